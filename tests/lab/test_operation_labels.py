# SPDX-License-Identifier: Apache-2.0
"""Show on a real ResourceManager that partitions and attributes follow labels of Nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.cluster import Lab
from lab.controller import ControllerProcess
from lab.hadoop.options import YarnOptions
from tests.contract.hadoop.suite_operations import LABEL, make_label
from tests.lab.bridge import FAST, SETTLED_SECONDS, Bridge, BridgedNode, Unique, merged
from tests.lab.hadoop_backend import RealBackend, SharedApplication, label_store
from yarn_copilot.hadoop.errors import StandbyError
from yarn_copilot.hadoop.model import NodeAttribute, NodeId

POOL, ZONE = "lab/pool", "topology.kubernetes.io/zone"


@pytest.fixture
def labelled_lab(tmp_path: Path) -> Iterator[Lab]:
    options = YarnOptions(
        properties={
            **label_store(tmp_path),
            "yarn.node-attribute.fs-store.root-dir": f"file://{tmp_path}/attributes",
        },
    )
    with Lab(node_managers=2, yarn_options=options) as lab:
        yield lab


def test_partitions_and_attributes_follow_labels_of_nodes(labelled_lab: Lab, unique: Unique) -> None:
    lab = labelled_lab
    backend = RealBackend(lab, SharedApplication(lab))
    lab.yarn.wait_for_nodes()
    asyncio.run(_make_label(backend))
    config = {
        "capacity": {"mode": "shared"},
        "node_labels": {"partition_label": POOL, "attributes": {ZONE: "zone"}, "interval_seconds": 0.5},
    }
    bridge = Bridge(lab, unique, config=merged(FAST, config))
    first, second = bridge.enroll_all()
    _label(bridge, first, {POOL: LABEL, ZONE: "zone-a"})
    _label(bridge, second, {POOL: "no-such-partition", ZONE: "zone-b"})
    controller = bridge.start()

    def shown() -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
        return asyncio.run(_shown(backend))

    hosts = [NodeId.parse(node.node_id).host for node in (first, second)]
    bridge.wait(
        lambda: shown() == ({first.node_id: (LABEL,)}, {hosts[0]: {"zone": "zone-a"}, hosts[1]: {"zone": "zone-b"}}),
        "labels and attributes are there",
        poll=0.5,
    )
    bridge.wait_event(second, "NodeLabelRefused", text="no-such-partition")
    for node in (first, second):
        bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)  # an update that is counted as a write too
    _wait_looks(bridge, controller, 2)
    writes = controller.metric("yarn_copilot_writes_total", {"target": "yarn", "result": "applied"})
    _wait_looks(bridge, controller, 3)
    assert controller.metric("yarn_copilot_writes_total", {"target": "yarn", "result": "applied"}) == writes
    _label(bridge, first, {POOL: None, ZONE: "zone-c"})
    _label(bridge, second, {POOL: LABEL, ZONE: None})
    bridge.wait(
        lambda: shown() == ({second.node_id: (LABEL,)}, {hosts[0]: {"zone": "zone-c"}}),
        "labels and attributes follow",
        poll=0.5,
    )


def _wait_looks(bridge: Bridge, controller: ControllerProcess, count: int) -> None:
    """Wait until the partitions and attributes have been compared so many times more."""

    def looks() -> float:
        return controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": "node_labels"})

    before = looks()
    bridge.wait(lambda: looks() >= before + count, f"it has looked {count} times more")


async def _make_label(backend: RealBackend) -> None:
    """Create the partition; the administrators' port of a ResourceManager opens a moment before it is active."""
    async with asyncio.timeout(SETTLED_SECONDS * 3):
        while True:
            try:
                return await make_label(backend)
            except StandbyError:
                await asyncio.sleep(0.5)


async def _shown(backend: RealBackend) -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
    async with backend.client() as client:
        labels = await client.get_nodes_to_labels()
        attributes = await client.get_nodes_to_attributes()
    ours = {
        host: {each.name: each.value for each in given if each.prefix == NodeAttribute("", "").prefix}
        for host, given in attributes.items()
    }
    return {str(node_id): names for node_id, names in labels.items()}, {k: v for k, v in ours.items() if v}


def _label(bridge: Bridge, node: BridgedNode, labels: dict[str, Any]) -> None:
    bridge.objects.merge(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": labels}})
