# SPDX-License-Identifier: Apache-2.0
"""Test the placement of the embedded API server."""

from __future__ import annotations

import asyncio

from lab.embedded.kubernetes import EmbeddedKubernetes

BATCH = "kubernetes.io/batch-cpu"


def _node_of(server: EmbeddedKubernetes, name: str) -> str | None:
    node: str | None = server.objects.get("pods", f"default/{name}")["spec"].get("nodeName")
    return node


def test_pods_go_to_the_first_node_where_they_fit() -> None:
    server = EmbeddedKubernetes()
    server.objects.create_node("a", allocatable={BATCH: "3000"})
    server.objects.create_node("b", allocatable={BATCH: "2k"})
    server.objects.create_pod("running", node_name="a", requests={BATCH: "1000"})
    server.objects.create_pod("finished", node_name="a", requests={BATCH: "9000"}, phase="Succeeded")
    for name in ("p1", "p2", "p3"):
        server.objects.create_pod(name, requests={BATCH: "2000"}, phase="Pending")
    assert server.scheduler().place_pending() == 2
    assert [_node_of(server, name) for name in ("p1", "p2", "p3")] == ["a", "b", None]


def test_a_node_selector_and_cordoned_nodes_are_respected() -> None:
    server = EmbeddedKubernetes()
    server.objects.create_node("a", allocatable={BATCH: "9000"})
    server.objects.create_node("b", allocatable={BATCH: "9000"}, labels={"zone": "z"})
    server.objects.create_node("c", allocatable={BATCH: "9000"}, labels={"zone": "z"})
    server.objects.merge("nodes", "b", {"spec": {"unschedulable": True}})
    server.objects.create_pod("p", requests={BATCH: "1"}, phase="Pending")
    server.objects.merge("pods", "default/p", {"spec": {"nodeSelector": {"zone": "z"}}})
    server.scheduler().place_pending()
    assert _node_of(server, "p") == "c"


async def test_a_pod_waits_until_there_is_room() -> None:
    server = EmbeddedKubernetes()
    server.objects.create_node("a", allocatable={BATCH: "1000"})
    task = asyncio.ensure_future(server.scheduler().run())
    server.objects.create_pod("p", requests={BATCH: "2000"}, phase="Pending")
    for _ in range(5):
        await asyncio.sleep(0)
    assert _node_of(server, "p") is None
    server.objects.merge("nodes", "a", {"status": {"allocatable": {BATCH: "2000"}}})
    for _ in range(5):
        await asyncio.sleep(0)
    assert _node_of(server, "p") == "a"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
