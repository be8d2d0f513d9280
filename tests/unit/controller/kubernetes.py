# SPDX-License-Identifier: Apache-2.0
"""Play the API server for the controller: objects with versions, lists, watches, patches, scripted faults."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tests.unit.kube.manual_clock import settle
from yarn_copilot.config.settings import KubernetesSettings
from yarn_copilot.kube.client import KubeClient, Page
from yarn_copilot.kube.clock import Clock
from yarn_copilot.kube.errors import KubeConnectionError, NotFoundError, PreconditionFailedError
from yarn_copilot.kube.kinds import NODES, ResourceKind
from yarn_copilot.kube.model import Node
from yarn_copilot.kube.transport import ByteStream

T = TypeVar("T")
ORIGIN = "node.koordinator.sh/originExtendedAllocatable"
THIRD = "node.koordinator.sh/thirdPartyAllocations"


class FakeStream(ByteStream):
    """Be one open watch."""

    def __init__(self) -> None:
        self.chunks: asyncio.Queue[bytes] = asyncio.Queue()

    async def read(self) -> bytes:
        """Wait for a line; an empty chunk ends the watch."""
        return await self.chunks.get()


class FakeKubernetes(KubeClient):
    """Hold nodes, pods and NodeMetrics as JSON objects.

    Attributes:
        patches: every patch asked for, as (node, expected text, new text).
        patch_errors: raised by the next patches, one each; None lets one pass.
        lands_before_error: whether a patch whose call fails takes effect all the same.
        unavailable: error for every list of a kind, by plural.
        silent: watches say nothing; changes wait in `held`.
        gate, answer_gate: while cleared, patches hang before or after they took effect.
    """

    def __init__(self, clock: Clock) -> None:
        self.settings = KubernetesSettings()
        self.clock = clock
        self.version = 1000
        self.objects: dict[str, dict[str, dict[str, Any]]] = {"nodes": {}, "pods": {}, "nodemetrics": {}}
        self.streams: dict[str, list[FakeStream]] = {"nodes": [], "pods": [], "nodemetrics": []}
        self.patches: list[tuple[str, str | None, str | None]] = []
        self.patch_errors: deque[Exception | None] = deque()
        self.lands_before_error = False
        self.down: Exception | None = None
        self.unavailable: dict[str, Exception] = {}
        self.silent = False
        self.held: list[tuple[str, bytes]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.answer_gate = asyncio.Event()
        self.answer_gate.set()

    # What tests do.

    def put(self, plural: str, key: str, body: dict[str, Any]) -> None:
        """Create or replace an object; watches hear of it."""
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        type_ = "MODIFIED" if key in self.objects[plural] else "ADDED"
        self.objects[plural][key] = body
        self._tell(plural, type_, body)

    def delete(self, plural: str, key: str) -> None:
        """Delete an object."""
        self.version += 1
        body = self.objects[plural].pop(key)
        body["metadata"]["resourceVersion"] = str(self.version)
        self._tell(plural, "DELETED", body)

    def annotate(self, name: str, **annotations: str | None) -> None:
        """Change annotations of a Node as somebody else; `origin` and `third` are short for Koordinator's keys."""
        body = json.loads(json.dumps(self.objects["nodes"][name]))
        for short, text in annotations.items():
            key = {"origin": ORIGIN, "third": THIRD}.get(short, short)
            if text is None:
                body["metadata"]["annotations"].pop(key, None)
            else:
                body["metadata"]["annotations"][key] = text
        self.put("nodes", name, body)

    def annotation(self, name: str, key: str = THIRD) -> str | None:
        """Read an annotation."""
        text: str | None = self.objects["nodes"][name]["metadata"]["annotations"].get(key)
        return text

    def bookmark(self) -> None:
        """Send a sign of life on every watch."""
        for plural in self.streams:
            self._send(plural, {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})

    def release_held(self) -> None:
        """Deliver what silent watches held back."""
        self.silent = False
        held, self.held = self.held, []
        for plural, line in held:
            for stream in self.streams[plural]:
                stream.chunks.put_nowait(line)

    async def delivered(self) -> None:
        """Wait until the watches were read empty."""
        while any(not stream.chunks.empty() for streams in self.streams.values() for stream in streams):
            await settle()

    def end_watches(self) -> None:
        """Close every watch, as a server does at its timeout."""
        for streams in self.streams.values():
            for stream in streams:
                stream.chunks.put_nowait(b"")

    def _tell(self, plural: str, type_: str, body: dict[str, Any]) -> None:
        self._send(plural, {"type": type_, "object": body})

    def _send(self, plural: str, event: dict[str, Any]) -> None:
        line = json.dumps(event).encode() + b"\n"
        if self.silent:
            self.held.append((plural, line))
            return
        for stream in self.streams[plural]:
            stream.chunks.put_nowait(line)

    # What the controller uses.

    async def list_pages(
        self, kind: ResourceKind[T], *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Page]:
        """Give everything in one page."""
        self._refuse(kind.plural)
        bodies = list(self.objects[kind.plural].values())
        listed = json.dumps({"metadata": {"resourceVersion": str(self.version)}, "items": bodies}).encode()
        metadata, items = kind.decode_page(listed)
        yield Page(metadata, items)

    @asynccontextmanager
    async def watch(
        self,
        kind: ResourceKind[T],
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        timeout_seconds: int = 300,
    ) -> AsyncIterator[ByteStream]:
        """Open a watch; nothing is replayed, the fakes never lose what happened before."""
        self._refuse(kind.plural)
        stream = FakeStream()
        self.streams[kind.plural].append(stream)
        try:
            yield stream
        finally:
            self.streams[kind.plural].remove(stream)

    async def get_node(self, node_name: str) -> Node:
        """Read one Node."""
        self._refuse("")
        body = self.objects["nodes"].get(node_name)
        if body is None:
            raise NotFoundError(f"GET node {node_name}: 404")
        return NODES.decode(json.dumps(body).encode())

    async def patch_node_annotations(
        self, node_name: str, *, expected: Mapping[str, str | None], changed: Mapping[str, str | None]
    ) -> Node:
        """Write under the precondition."""
        self.patches.append((node_name, expected.get(THIRD), changed.get(THIRD)))
        await self.gate.wait()
        error = self.patch_errors.popleft() if self.patch_errors else None
        if error is not None and not self.lands_before_error:
            raise error
        self._refuse("")
        body = self.objects["nodes"].get(node_name)
        if body is None:
            raise NotFoundError(f"PATCH node {node_name}: 404")
        annotations = body["metadata"]["annotations"]
        if any(annotations.get(key) != text for key, text in expected.items()):
            raise PreconditionFailedError(f"PATCH node {node_name}: 422")
        self.annotate(node_name, **changed)
        stored = await self.get_node(node_name)
        await self.answer_gate.wait()
        if error is not None:
            raise error
        return stored

    def _refuse(self, plural: str) -> None:
        if self.down is not None:
            raise self.down
        if plural in self.unavailable:
            raise self.unavailable[plural]


def connection_lost() -> KubeConnectionError:
    """Give the error of a call that got no answer."""
    return KubeConnectionError("PATCH: connection reset")
