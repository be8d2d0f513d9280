# SPDX-License-Identifier: Apache-2.0
"""Count the requests that the API server has answered, from its audit log.

The log has one JSON line for each finished request (level Metadata, stage ResponseComplete). It is written before the
answer is complete, so a request whose answer the caller has is in it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

# Requests of the control plane's own parts say nothing about the product.
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver", "system:kube-scheduler", "system:anonymous"]},
        {"level": "None", "nonResourceURLs": ["/*"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True, slots=True)
class Request:
    """Hold what is counted of one request."""

    verb: str
    resource: str
    subresource: str
    name: str
    user: str
    code: int


class AuditLog:
    """Read the audit log from where the last reading ended; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._requests: list[Request] = []
        self._lock = threading.Lock()

    def requests(self) -> list[Request]:
        """Return all finished requests so far, oldest first."""
        with self._lock:
            self._requests.extend(self._read_new())
            return list(self._requests)

    def count(
        self,
        *,
        verb: str | None = None,
        resource: str | None = None,
        name: str | None = None,
        user: str | None = None,
        succeeded_only: bool = False,
    ) -> int:
        """Count requests; an argument that is None matches everything.

        Args:
            verb: get, list, watch, create, update, patch, delete ...
            resource: plural name, or `plural/subresource`.
            name: object name.
            user: user name as authenticated.
            succeeded_only: leave answers of 400 and above out.
        """
        return sum(
            (verb is None or request.verb == verb)
            and (resource is None or resource in {request.resource, f"{request.resource}/{request.subresource}"})
            and (name is None or request.name == name)
            and (user is None or request.user == user)
            and not (succeeded_only and request.code >= 400)
            for request in self.requests()
        )

    def _read_new(self) -> Iterator[Request]:
        if not self._path.exists():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._offset)
            for line in stream:
                if not line.endswith(b"\n"):  # still being written
                    return
                self._offset += len(line)
                request = _request_of(json.loads(line))
                if request is not None:
                    yield request


def _request_of(event: dict[str, Any]) -> Request | None:
    """Take what is counted; a watch counts when it starts, everything else when it is complete."""
    verb = event.get("verb", "")
    expected = "ResponseStarted" if verb == "watch" else "ResponseComplete"
    if event.get("stage") != expected:
        return None
    target = event.get("objectRef") or {}
    return Request(
        verb=verb,
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        name=target.get("name", ""),
        user=(event.get("user") or {}).get("username", ""),
        code=(event.get("responseStatus") or {}).get("code", 0),
    )
