# SPDX-License-Identifier: Apache-2.0
"""Show the last stage of giving way on real servers: the ResourceManager cannot act, so the agent on the node does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from lab.cluster import Lab
from lab.node.beside import agent_beside
from lab.node.machine import Machine
from lab.node.running_agent import RunningAgent
from lab.processes.certificates import make_certificate
from nm_proxy.agent import Agent
from tests.contract.nm_proxy.test_port_api import TOKEN
from tests.lab.bridge import Unique
from tests.lab.strict_busy import IN_USE, BusyNode, busy_node

_LEFT: Final = 8
_KILLED_SECONDS: Final = 60.0
_NAME: Final = "copilot.yarn.svc"
"""A name in the certificate."""


class Secret:
    """Hold the files that the agent and the controller share."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = make_certificate(folder, also=f"DNS:{_NAME}")
        self.token = folder / "token"
        self.token.write_text(TOKEN)

    def agent(self) -> dict[str, Any]:
        """Give the agent's section `copilot`."""
        return {
            "port": 0,
            "tls_certificate": str(self.certificate),
            "tls_key": str(self.key),
            "kill_token": str(self.token),
        }

    def controller(self) -> dict[str, Any]:
        """Give the controller's settings: all stages, soon after one another."""
        return {
            "capacity": {
                "giving_way": {
                    "grace_seconds": 3,
                    "preemption_timeout_seconds": 2,
                    "forced": True,
                    "forced_after_seconds": 1,
                }
            },
            "node_agents": {
                "tls": True,
                "ca_file": str(self.certificate),
                "server_name": _NAME,
                "token_file": str(self.token),
                "interval_seconds": 0.5,
            },
        }


def _alive(machine: Machine, agent: Agent) -> set[str]:
    """Name the containers that have processes in their groups."""
    return {name for name, state in list(agent.adopter.states.items()) if machine.tree.processes(state.path)}


def _wait_stage(busy: BusyNode, *stages: str) -> None:
    busy.found.bridge.wait(lambda: busy.stage() in stages, f"the stage is one of {stages}", seconds=_KILLED_SECONDS)


@pytest.mark.timeout(400)
def test_the_agent_kills_the_youngest_where_the_resource_manager_cannot(
    lab: Lab, machine: Machine, unique: Unique, tmp_path: Path
) -> None:
    """Stop the NodeManager before the deadline: without its heartbeats the ResourceManager never acts on it."""
    manager, secret = lab.yarn.node_managers[0], Secret(tmp_path)
    agent = agent_beside(
        manager, hierarchy=machine.place.yarn, socket=tmp_path / "copilot.sock", copilot=secret.agent()
    )
    with (
        RunningAgent(agent),
        busy_node(
            lab,
            unique,
            secret.controller(),
            pod={"agent_port": agent.copilot_port},
            launched=lambda: len(_alive(machine, agent)),
        ) as busy,
    ):
        bridge, application = busy.found.bridge, busy.application
        bridge.wait(lambda: len(_alive(machine, agent)) == IN_USE, "all are in their groups", seconds=_KILLED_SECONDS)
        before = _alive(machine, agent)
        youngest = {each.id for each in busy.young[_LEFT - IN_USE :]}
        busy.publish(_LEFT)
        _wait_stage(busy, "soft", "graded")
        manager.pause()
        try:
            assert application.killed() == []
            assert _alive(machine, agent) == before
            bridge.wait_event(busy.node, "TasksKilledOnNode", seconds=_KILLED_SECONDS)
            assert before - _alive(machine, agent) == youngest
            assert "were to be freed" in busy.view()["agent"]["killed"]
            assert busy.stage() == "forced"
            assert busy.controller.metric("yarn_copilot_nodes_by_reason", {"reason": "PreemptionDeadlineSet"}) == 1
            assert busy.used_vcores() == IN_USE, "the ResourceManager has not acted"
        finally:
            manager.resume()
        bridge.wait(lambda: busy.used_vcores() == _LEFT, "the ResourceManager hears of it", seconds=_KILLED_SECONDS)
        _wait_stage(busy, "none")
        assert before - _alive(machine, agent) == youngest
        assert {each.id for each in application.completed()} == youngest
        assert len(application.running()) == _LEFT - 1
        assert application.errors == [], "the ApplicationMaster survives"
        application.stop()
