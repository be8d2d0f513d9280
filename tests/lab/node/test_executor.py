# SPDX-License-Identifier: Apache-2.0
"""Test the way in which LinuxContainerExecutor makes the groups, with a real NodeManager and a stand-in program.

The setuid container-executor is in no package registry; `lab/node/container_executor.py` speaks its command line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from lab.node import container_executor
from lab.node.beside import agent_beside
from lab.node.machine import Machine
from lab.node.running_agent import RunningAgent
from lab.processes import probes

MIB = 1 << 20
_EXECUTOR = "yarn.nodemanager.linux-container-executor"


def options_for(machine: Machine, program: Path) -> YarnOptions:
    return YarnOptions(
        minimum_memory_mib=1,
        properties={
            "yarn.nodemanager.container-executor.class": (
                "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor"
            ),
            f"{_EXECUTOR}.path": str(program),
            f"{_EXECUTOR}.group": "root",
            f"{_EXECUTOR}.nonsecure-mode.limit-users": "true",
            f"{_EXECUTOR}.nonsecure-mode.local-user": "root",
            f"{_EXECUTOR}.cgroups.hierarchy": f"/{machine.place.yarn}",
            f"{_EXECUTOR}.cgroups.mount": "false",
            f"{_EXECUTOR}.cgroups.mount-path": "/sys/fs/cgroup",
            "yarn.nodemanager.resource.cpu.enabled": "true",
            "yarn.nodemanager.resource.memory.enabled": "true",
        },
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Give the program at a path of its own, executable, and quick to start."""
    target = tmp_path / "container-executor"
    target.write_text(f"#!{sys.executable} -SE\n{Path(container_executor.__file__).read_text()}")
    target.chmod(0o755)
    return target


@pytest.fixture(params=["3.5.0", "3.3.6"])
def yarn_lab(request: pytest.FixtureRequest, machine: Machine, program: Path) -> Iterator[Lab]:
    """Run YARN with one NodeManager whose executor makes the groups; their parent is prepared before it starts."""
    assert machine.look().errors == {}
    options = options_for(machine, program)
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield lab


def test_groups_that_the_executor_made_are_completed_and_its_values_stay(
    yarn_lab: Lab, machine: Machine, tmp_path: Path
) -> None:
    yarn_lab.yarn.set_capacity(yarn_lab.yarn.node_managers[0].node_id, 4096, 8)
    agent = agent_beside(
        yarn_lab.yarn.node_managers[0],
        hierarchy=machine.place.yarn,
        socket=tmp_path / "copilot.sock",
        parenting={"mode": "executor", "empty_group_age_seconds": 5},
    )
    with RunningAgent(agent) as running:
        application = yarn_lab.submit()
        application.ask(count=2, memory_mib=256, vcores=2)
        containers = application.wait_running(2)
        paths = {one.id: machine.place.container(one.id) for one in containers}
        probes.wait_until(
            lambda: all(_is_everywhere(machine, path) for path in paths.values()),
            what=f"both tasks of {paths} are inside in every hierarchy",
            timeout_seconds=60,
        )
        assert application.completed() == []
        for path in paths.values():
            values = machine.tree.values(path)
            assert (values.cpu, values.memory_bytes) == (2048, 256 * MIB)
        # The executor places tasks without the agent, which sees them at its next look.
        adopter = running.agent.adopter
        probes.wait_until(
            lambda: paths.items() <= {name: state.path for name, state in adopter.states.items()}.items(),
            what=f"the agent knows {paths}",
            timeout_seconds=60,
        )
        probes.wait_until(
            lambda: machine.tree.values(machine.place.yarn).cpu == 4096,
            what="the parent weighs four vcores",
            timeout_seconds=60,
        )
        application.stop()
        probes.wait_until(
            lambda: not machine.tree.containers(machine.place.yarn), what="all groups are gone", timeout_seconds=60
        )


def _is_everywhere(machine: Machine, path: str) -> bool:
    members = machine.tree.members(path)
    if all(members.values()) and len(set(members.values())) == 1:
        return True
    raise probes.NotReadyError(f"members of {path}: {members}")
