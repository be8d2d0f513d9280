# SPDX-License-Identifier: Apache-2.0
"""Count the calls that reach the server, as an audit log would."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Final

WRITES: Final = frozenset({"create", "update", "patch", "delete"})
_KEPT_CALLS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Call:
    """Hold one call that was answered.

    Attributes:
        verb: get, list, watch, create, update, patch, delete.
        resource: plural with subresource, `nodes/status`.
        key: name or namespace/name, "" for a collection.
        code: HTTP status; 0 where the connection was cut instead.
        user: who, by the token.
        body: what was sent.
    """

    verb: str
    resource: str
    key: str
    code: int
    user: str
    body: bytes


class CallLog:
    """Count all calls and keep the last of them."""

    def __init__(self) -> None:
        self.last: deque[Call] = deque(maxlen=_KEPT_CALLS)
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def record(self, call: Call) -> None:
        """Take a call."""
        self.last.append(call)
        self._counts[call.verb, call.resource, call.user] += 1

    def count(self, verb: str | None = None, resource: str | None = None, *, user: str | None = None) -> int:
        """Count calls since the start or `clear`, refused ones included; None stands for any."""
        wanted = (verb, resource, user)
        return sum(
            count
            for call, count in self._counts.items()
            if all(want is None or want == have for want, have in zip(wanted, call, strict=True))
        )

    def writes(self, resource: str | None = None, *, user: str | None = None) -> int:
        """Count creates, updates, patches and deletes."""
        return sum(self.count(verb, resource, user=user) for verb in WRITES)

    def clear(self) -> None:
        """Start again from zero."""
        self.last.clear()
        self._counts.clear()
