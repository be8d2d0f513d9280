# SPDX-License-Identifier: Apache-2.0
"""Let one suite run against any API server: an own plain HTTP client beside the product's, and unique names."""

from __future__ import annotations

import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

from yarn_copilot.config.settings import KubernetesSettings
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.credentials import StaticCredentials

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what came back: status and decoded JSON (or text)."""

    code: int
    body: Any


class KubeBackend:
    """Reach an API server; `call` sends exactly what a test says, `client` is the product's client.

    Args:
        url: base URL.
        token: of a user who may do everything.
        ca_file: certificate to trust, None for http.
    """

    def __init__(self, url: str, token: str, ca_file: Path | None) -> None:
        self.tls = ssl.create_default_context(cafile=str(ca_file)) if ca_file is not None else None
        self._session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"})
        self.url = url
        settings = KubernetesSettings(list_page_size=50, backoff_max_seconds=0.2)
        self.client = KubeClient(StaticCredentials(url, token, self.tls), settings)
        self.prefix = f"t{secrets.token_hex(4)}"

    async def __aenter__(self) -> KubeBackend:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in ("/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/default/leases"):
            listed = await self.call("GET", path)
            for item in listed.body["items"]:
                if item["metadata"]["name"].startswith(self.prefix):
                    await self.call("DELETE", f"{path}/{item['metadata']['name']}")
        await self.client.aclose()
        await self._session.close()

    def name(self, suffix: str) -> str:
        """Give a name that no other test uses."""
        return f"{self.prefix}-{suffix}"

    async def call(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Answer:
        """Send one request."""
        options: dict[str, Any] = {"ssl": self.tls} if self.tls is not None else {}
        headers = {"Content-Type": content_type} if body is not None else {}
        async with self._session.request(
            method, self.url + path, json=body, headers=headers, timeout=aiohttp.ClientTimeout(total=20), **options
        ) as response:
            is_json = response.content_type == "application/json"
            return Answer(response.status, await response.json() if is_json else await response.text())

    async def json_patch(self, path: str, *operations: dict[str, Any]) -> Answer:
        """Send a JSON patch."""
        return await self.call("PATCH", path, list(operations), content_type=JSON_PATCH)

    async def merge(self, path: str, patch: dict[str, Any]) -> Answer:
        """Send a merge patch."""
        return await self.call("PATCH", path, patch, content_type=MERGE_PATCH)

    async def create_node(self, suffix: str, **metadata: Any) -> str:
        """Create a Node and give its name."""
        name = self.name(suffix)
        created = await self.call("POST", "/api/v1/nodes", {"metadata": {"name": name, **metadata}})
        assert created.code == 201, created.body
        return name
