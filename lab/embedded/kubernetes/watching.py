# SPDX-License-Identifier: Apache-2.0
"""Turn the history of a collection into the lines of one watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from aiohttp import web

from lab.embedded.kubernetes.selectors import selector_or_none
from lab.embedded.kubernetes.statuses import Refusal, too_old
from lab.embedded.kubernetes.store import Change, Collection, Store, Stored

_LINES_PER_WRITE: Final = 500
_DEFAULT_TIMEOUT_SECONDS: Final = 1800.0


class Watch:
    """Serve one watch until its time is over, its client leaves or the server stops.

    Args:
        store: gives the current version for bookmarks.
        collection: what is watched.
        namespace: restricts to one, "" for all.
        query: of the request.
        bookmark_seconds: time between bookmarks.
    """

    def __init__(
        self, store: Store, collection: Collection, namespace: str, query: Mapping[str, str], bookmark_seconds: float
    ) -> None:
        self._store = store
        self._collection = collection
        self._prefix = f"{namespace}/" if namespace else ""
        self._selects = selector_or_none(
            collection.type.plural, query.get("labelSelector", ""), query.get("fieldSelector", "")
        )
        self._bookmarks = query.get("allowWatchBookmarks") in ("1", "true", "True")
        self._bookmark_seconds = bookmark_seconds
        seconds = float(query.get("timeoutSeconds") or _DEFAULT_TIMEOUT_SECONDS)
        self._ends_at = time.monotonic() + seconds
        self._start_text = query.get("resourceVersion") or "0"
        self._position = 0
        self._wakeup = asyncio.Event()

    def end(self) -> None:
        """End the watch as if its time were over."""
        self._ends_at = float("-inf")
        self._wakeup.set()

    async def serve(self, response: web.StreamResponse, is_silent: Callable[[], bool]) -> None:
        """Write lines to a prepared response."""
        wakeup = self._wakeup
        self._collection.watchers.add(wakeup)
        try:
            await response.write(b"".join(self._first_lines()))
            await self._follow(response, wakeup, is_silent)
        except Refusal as refusal:
            await response.write(line("ERROR", refusal.body()))
        finally:
            self._collection.watchers.discard(wakeup)

    def _first_lines(self) -> list[bytes]:
        version = self._start_version()
        if version == 0:
            self._position = self._collection.offset + len(self._collection.history)
            current = self._collection.sorted()
            return [line("ADDED", stored.body) for stored in current if self._is_selected(stored)]
        if version < self._collection.compacted:
            raise too_old(version, self._collection.compacted)
        self._position = self._collection.position_after(version)
        return []

    def _start_version(self) -> int:
        try:
            return int(self._start_text)
        except ValueError as error:
            message = f'resourceVersion: Invalid value: "{self._start_text}": strconv.ParseUint: invalid syntax'
            raise Refusal(500, "", message) from error

    async def _follow(self, response: web.StreamResponse, wakeup: asyncio.Event, is_silent: Callable[[], bool]) -> None:
        next_bookmark = time.monotonic() + self._bookmark_seconds
        while (now := time.monotonic()) < self._ends_at:
            wakeup.clear()
            lines = [] if is_silent() else self._next_lines()
            if not lines and self._bookmarks and now >= next_bookmark and not is_silent():
                lines = [self._bookmark()]
            if lines:
                next_bookmark = time.monotonic() + self._bookmark_seconds
                await response.write(b"".join(lines))
                continue
            until = min(self._ends_at, next_bookmark if self._bookmarks and not is_silent() else self._ends_at)
            try:
                async with asyncio.timeout(max(0.0, until - now)):
                    await wakeup.wait()
            except TimeoutError:
                continue

    def _next_lines(self) -> list[bytes]:
        lines: list[bytes] = []
        collection = self._collection
        while len(lines) < _LINES_PER_WRITE:
            index = self._position - collection.offset
            if index < 0:
                raise too_old(0, collection.compacted)
            if index >= len(collection.history):
                break
            self._position += 1
            if text := self._line_or_none(collection.history[index]):
                lines.append(text)
        return lines

    def _line_or_none(self, change: Change) -> bytes | None:
        """Give the change as this watch sees it: what enters its selection is ADDED, what leaves is DELETED."""
        is_in = change.type != "DELETED" and self._is_selected(change.stored)
        was_in = change.previous is not None and self._is_selected(change.previous)
        if is_in:
            return line("MODIFIED" if was_in else "ADDED", change.stored.body)
        return line("DELETED", change.stored.body) if was_in else None

    def _is_selected(self, stored: Stored) -> bool:
        if self._prefix and not stored.key.startswith(self._prefix):
            return False
        return self._selects is None or self._selects(stored.labels, stored.fields)

    def _bookmark(self) -> bytes:
        type_ = self._collection.type
        metadata = {"resourceVersion": str(self._store.version)}
        body = {"kind": type_.kind, "apiVersion": type_.api_version, "metadata": metadata}
        return line("BOOKMARK", msgspec.json.encode(body))


def line(type_: str, body: bytes) -> bytes:
    """Encode one event."""
    return b'{"type":"' + type_.encode() + b'","object":' + body + b"}\n"
