# SPDX-License-Identifier: Apache-2.0
"""Say what the reflector gives, on the embedded and on a real API server alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from tests.contract.kube.backend import KubeBackend
from tests.contract.kube.sinks import RecordingSink, eventually
from yarn_copilot.kube.model import Node, NodeMetric
from yarn_copilot.kube.reflector import NODE_METRICS, NODES, Reflector

Change = tuple[str, str, str | None]


def _annotation(node: Node) -> str | None:
    return node.metadata.annotations.get("k")


@asynccontextmanager
async def _mirrored(backend: KubeBackend) -> AsyncIterator[RecordingSink[str | None]]:
    sink: RecordingSink[str | None] = RecordingSink()
    reflector = Reflector(backend.client, NODES, reduce=_annotation, sink=sink, label_selector=f"of={backend.prefix}")
    task = asyncio.ensure_future(reflector.run())
    try:
        await asyncio.wait_for(reflector.wait_synced(), 20)
        yield sink
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_mirror_starts_with_all_objects_and_follows_every_version(kube_backend: KubeBackend) -> None:
    labels = {"of": kube_backend.prefix}
    names = [await kube_backend.create_node(f"n{number:03}", labels=labels) for number in range(60)]
    async with _mirrored(kube_backend) as sink:
        assert sink.items == dict.fromkeys(names)
        for number in range(30):
            await kube_backend.merge(f"/api/v1/nodes/{names[0]}", {"metadata": {"annotations": {"k": str(number)}}})
        await kube_backend.call("DELETE", f"/api/v1/nodes/{names[1]}")
        created = await kube_backend.create_node("new", labels=labels, annotations={"k": "here"})
        await eventually(lambda: created in sink.items)
    assert sink.versions(names[0]) == [str(number) for number in range(30)]
    assert names[1] not in sink.items
    assert sink.lists == 1


async def test_objects_that_enter_or_leave_the_selection_come_and_go(kube_backend: KubeBackend) -> None:
    name = await kube_backend.create_node("a")
    path = f"/api/v1/nodes/{name}"
    async with _mirrored(kube_backend) as sink:
        await kube_backend.merge(path, {"metadata": {"labels": {"of": kube_backend.prefix}}})
        await eventually(lambda: name in sink.items)
        await kube_backend.merge(path, {"metadata": {"labels": {"of": None}}})
        await eventually(lambda: name not in sink.items)


async def test_a_kind_that_is_not_served_is_reported(kube_backend: KubeBackend) -> None:
    sink: RecordingSink[str | None] = RecordingSink()
    update_time: Callable[[NodeMetric], str | None] = lambda metric: metric.status.updateTime  # noqa: E731
    listed = await kube_backend.call("GET", NODE_METRICS.path)
    reflector = Reflector(kube_backend.client, NODE_METRICS, reduce=update_time, sink=sink)
    task = asyncio.ensure_future(reflector.run())
    if listed.code == 404:
        await eventually(lambda: bool(sink.reasons))
        assert "404" in sink.reasons[0]
    else:
        await eventually(lambda: reflector.has_synced)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


__all__ = [name for name in dir() if name.startswith("test_")]
