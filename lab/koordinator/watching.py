# SPDX-License-Identifier: Apache-2.0
"""Keep a copy of all objects of one kind and tell of every change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import aiohttp

from lab.koordinator.api import Api, ApiError, JsonObject

_RETRY_SECONDS = 0.2
_log = logging.getLogger(__name__)


class WatchedObjects:
    """List once, then watch; list again whenever the watch ends with an error. One task runs it."""

    def __init__(self, api: Api, path: str, on_change: Callable[[str], None]) -> None:
        """Watch objects without a namespace.

        Args:
            api: An open client.
            path: Path of the collection, for example `/api/v1/nodes`.
            on_change: Called with the object's name after the copy changed, also when the object is gone.
        """
        self.objects: dict[str, JsonObject] = {}
        self.synced = asyncio.Event()
        self._api = api
        self._path = path
        self._on_change = on_change

    async def run(self) -> None:
        """Run until cancelled; the server being away is no end."""
        while True:
            try:
                version = await self._list()
                while True:
                    version = await self._watch(version)
            except (ApiError, aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                _log.info("watch interrupted path=%s error=%s", self._path, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _list(self) -> str:
        answer = await self._api.call("GET", self._path)
        fresh = {item["metadata"]["name"]: item for item in answer.get("items") or []}
        changed = [name for name, item in fresh.items() if _version(item) != _version(self.objects.get(name))]
        gone = self.objects.keys() - fresh.keys()
        self.objects.clear()
        self.objects.update(fresh)
        self.synced.set()
        for name in [*changed, *gone]:
            self._on_change(name)
        return str(answer["metadata"]["resourceVersion"])

    async def _watch(self, version: str) -> str:
        async for event in self._api.watch(self._path, version):
            item = event["object"]
            version = item["metadata"]["resourceVersion"]
            if event["type"] == "BOOKMARK":
                continue
            name = item["metadata"]["name"]
            if event["type"] == "DELETED":
                self.objects.pop(name, None)
            else:
                self.accept(item)
            self._on_change(name)
        return version

    def accept(self, item: JsonObject) -> None:
        """Take an object over unless a newer version is there: an own write is often ahead of the watch."""
        name = item["metadata"]["name"]
        known = self.objects.get(name)
        if known is None or int(item["metadata"]["resourceVersion"]) >= int(known["metadata"]["resourceVersion"]):
            self.objects[name] = item


def _version(item: JsonObject | None) -> str | None:
    return None if item is None else item["metadata"].get("resourceVersion")
