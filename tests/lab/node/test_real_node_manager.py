# SPDX-License-Identifier: Apache-2.0
"""Test the whole agent beside a real NodeManager, on the machine's own cgroup tree: places, limits, kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from batch_resources.resources import BatchResources
from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from lab.node.beside import agent_beside
from lab.node.machine import Machine
from lab.node.running_agent import RunningAgent
from lab.processes import probes
from nm_proxy.agent import Agent

MIB = 1 << 20


@pytest.fixture(params=["3.5.0", "3.3.6"])
def yarn_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Run YARN alone with one NodeManager, in the newest and in an old version."""
    options = YarnOptions(minimum_memory_mib=1)
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield lab


def repairs_of(agent: Agent) -> dict[str, float]:
    """Read how many repairs were counted; nobody changes anything here."""
    return {
        sample.labels["what"]: sample.value
        for family in agent.metrics.registry.collect()
        for sample in family.samples
        if sample.name == "yarn_copilot_node_repairs_total"
    }


def test_tasks_of_a_real_node_manager_are_placed_limited_and_killed_alone(
    yarn_lab: Lab, machine: Machine, tmp_path: Path
) -> None:
    node_manager = yarn_lab.yarn.node_managers[0]
    yarn_lab.yarn.set_capacity(node_manager.node_id, 4096, 8)
    agent = agent_beside(node_manager, hierarchy=machine.place.yarn, socket=tmp_path / "copilot.sock")
    with RunningAgent(agent) as running:
        application = yarn_lab.submit()
        application.ask(count=2, memory_mib=256, vcores=2)
        application.wait_running(2)
        probes.wait_until(
            lambda: sum(state.is_done for state in agent.adopter.states.values()) == 2,
            what="both tasks are inside with their limits",
            timeout_seconds=60,
        )
        for name, state in agent.adopter.states.items():
            values = machine.tree.values(state.path)
            assert (values.cpu, values.memory_bytes) == (2048, 256 * MIB)
            assert state.path == f"{machine.place.yarn}/{name}"
            assert machine.tree.processes(state.path)
        probes.wait_until(
            lambda: machine.tree.values(machine.place.yarn).cpu == 4096,
            what="the parent weighs four vcores",
            timeout_seconds=60,
        )
        # A pass puts things right first and counts them afterwards.
        probes.wait_until(
            lambda: agent.metrics.registry.get_sample_value("yarn_copilot_node_parenting_latency_seconds_count") == 2,
            what="both latencies are counted",
            timeout_seconds=60,
        )
        room = running.make_room(BatchResources(cpu_milli=1000, memory_bytes=0))
        assert len(room.ended) == 1
        assert room.freed == BatchResources(cpu_milli=2000, memory_bytes=256 * MIB)
        application.wait_for(lambda: len(application.completed()) == 1, what="YARN hears of the end")
        assert len(application.running()) == 1
        application.stop()
        probes.wait_until(
            lambda: not any(machine.tree.processes(state.path) for state in list(agent.adopter.states.values())),
            what="all groups are empty",
            timeout_seconds=60,
        )
        assert agent.lingering.lingering == {}
        assert repairs_of(agent) == {}
