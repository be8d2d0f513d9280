# SPDX-License-Identifier: Apache-2.0
"""Show that a bridge with nothing to do writes nothing, counted at the servers."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime

import pytest

from lab.cluster import Lab
from lab.controller import ControllerProcess
from lab.kubernetes import bodies
from tests.lab import access
from tests.lab.bridge import FAST, SETTLED_SECONDS, Bridge, BridgedNode, Unique, merged

_CYCLES = 1000
_BUSY = merged(
    FAST,
    {
        "capacity": {"batch_interval_seconds": 0},
        "yarn": {"poll_interval_seconds": 0.05, "confirm_interval_seconds": 0.05},
    },
)


def _cycles(controller: ControllerProcess, loop: str) -> float:
    return controller.metric("yarn_copilot_loop_cycle_seconds_count", {"loop": loop})


def _writes(bridge: Bridge) -> tuple[int, int]:
    """Count the bridge's patches of Nodes and its updates, at the API server and at the ResourceManager."""
    patches = bridge.lab.kubernetes.count_requests("patch", "nodes", user=access.user_of(access.ACCOUNT))
    return patches, bridge.lab.yarn.count_update_calls()


def _stir(bridge: Bridge, node: BridgedNode, number: int) -> None:
    """Change all that may change without a meaning: reports, heartbeats, and what others note in the annotation."""
    moment = datetime.fromtimestamp(time.time() + number, UTC)
    bridge.objects.write_node_metric(node.name, {"updateTime": f"{moment:%Y-%m-%dT%H:%M:%SZ}"})
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": f"{moment:%Y-%m-%dT%H:%M:%SZ}"}
    bridge.objects.merge(f"/api/v1/nodes/{node.name}/status", {"status": {"conditions": [condition]}})
    document = bridge.objects.third_party(node.name)
    assert document is not None
    document["note"] = number  # changes the text of the annotation: the node is planned again
    bridge.objects.annotate_node(node.name, {bodies.THIRD_PARTY_ANNOTATION: json.dumps(document)})


@pytest.mark.timeout(900)  # a minute on a quiet machine, several on a busy one
def test_thousand_cycles_with_equal_data_write_nothing(lab: Lab, unique: Unique) -> None:
    bridge = Bridge(lab, unique, config=_BUSY)
    nodes = bridge.enroll_all()
    application = lab.submit()
    at_rest = _writes(bridge)
    controller = bridge.start()
    for node in nodes:
        bridge.wait_capacity(node, 8192, 8, seconds=SETTLED_SECONDS)
        application.ask(count=2, memory_mib=700, node=node.node_id)
    application.wait_running(6)
    bridge.wait_settled(*nodes)
    before = _writes(bridge)
    # Every claim was written twice (floor, use) and capacities were sent at least once: the counts do count.
    assert before[0] - at_rest[0] >= 2 * len(nodes)
    assert before[1] - at_rest[1] >= 1

    began = {loop: _cycles(controller, loop) for loop in ("planning", "cluster_view")}
    number = 0
    while any(_cycles(controller, loop) - began[loop] < _CYCLES for loop in began):
        _stir(bridge, nodes[number % len(nodes)], number)
        number += 1
    assert _writes(bridge) == before
    for node in nodes:
        assert bridge.capacity(node) == (8192, 8)
        assert bridge.claim(node) == bridge.claim_for((1400, 2))
