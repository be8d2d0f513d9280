# SPDX-License-Identifier: Apache-2.0
"""Test the fleet's own life: many nodes, lost connections, what it counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, faults
from lab.fleet import Fleet, FleetOptions
from tests.contract.hadoop.backend import settled
from tests.contract.programs import start_python
from yarn_copilot.hadoop.model import NodeId, NodeState

QUICK = FleetOptions(heartbeat_seconds=0.05)


@pytest.fixture
async def yarn() -> AsyncIterator[EmbeddedYarn]:
    """Run a ResourceManager without nodes."""
    async with EmbeddedYarn(EmbeddedYarnOptions(heartbeat_seconds=None)) as started:
        yield started


async def test_numbered_nodes_have_addresses_that_need_no_lookup(yarn: EmbeddedYarn) -> None:
    async with Fleet(yarn.tracker_address, 300, options=QUICK) as fleet:
        assert len(yarn.state.nodes) == 300
        assert fleet.nodes[299].node_id == NodeId("10.64.1.44", 8041)
    assert fleet.statistics.connections == 1


async def test_names_come_from_the_format(yarn: EmbeddedYarn) -> None:
    async with Fleet(yarn.tracker_address, 2, options=FleetOptions(host_format="nm-{:03d}", port=9)):
        assert set(yarn.state.nodes) == {NodeId("nm-000", 9), NodeId("nm-001", 9)}


async def test_every_node_reports_again_and_again(yarn: EmbeddedYarn) -> None:
    async with Fleet(yarn.tracker_address, 5, options=QUICK) as fleet:
        await settled(lambda: all(node.response_id >= 3 for node in fleet.nodes))
        assert fleet.statistics.errors == 0


async def test_fleet_waits_for_a_resource_manager_that_is_away(yarn: EmbeddedYarn) -> None:
    async with Fleet(yarn.tracker_address, 5, options=QUICK) as fleet:
        await yarn.stop_rm()
        await yarn.start_rm()
        await settled(lambda: len(yarn.state.nodes) == 5)
        assert fleet.statistics.connections == 2
        assert fleet.statistics.resyncs >= 1


async def test_refused_report_is_counted_and_sent_again(yarn: EmbeddedYarn) -> None:
    async with Fleet(yarn.tracker_address, 1, options=QUICK) as fleet:
        yarn.faults.add(faults.refusal("java.lang.NullPointerException", "oops"), method="nodeHeartbeat")
        await settled(lambda: fleet.statistics.errors == 1)
        assert "oops" in fleet.statistics.last_error
        beats = fleet.statistics.heartbeats
        await settled(lambda: fleet.statistics.heartbeats > beats)


async def test_broken_answer_ends_the_connection_and_the_fleet_connects_again(yarn: EmbeddedYarn) -> None:
    async with Fleet(yarn.tracker_address, 1, options=QUICK) as fleet:
        yarn.faults.add(faults.oversize(-1), method="nodeHeartbeat")
        await settled(lambda: fleet.statistics.connections == 2)


async def test_stopped_node_says_goodbye_and_can_come_back(yarn: EmbeddedYarn) -> None:
    async with Fleet(yarn.tracker_address, 1, options=QUICK) as fleet:
        (node,) = fleet.nodes
        fleet.unregister_node(node)
        await settled(lambda: node.node_id in yarn.state.inactive)
        assert yarn.state.inactive[node.node_id].state is NodeState.SHUTDOWN
        fleet.restart_node(node)
        await fleet.wait_registered()
        assert node.node_id in yarn.state.nodes


async def test_command_line_registers_and_reports(yarn: EmbeddedYarn) -> None:
    arguments = ["--tracker", yarn.tracker_address, "--nodes", "3", "--seconds", "0.3", "--memory-mib", "2048"]
    process = await start_python("-m", "lab.fleet", *arguments, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    assert b"3 nodes registered in" in output
    assert b"errors=0" in output
    assert {node.capability.memory_mib for node in yarn.state.nodes.values()} == {2048}
