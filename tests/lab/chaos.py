# SPDX-License-Identifier: Apache-2.0
"""Kill and freeze parts of a running lab in mode strict, one after the other, as a seed says."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from lab.controller import ControllerProcess, Program
from lab.errors import LabError
from lab.processes import probes
from tests.lab.program.dying import Death
from tests.lab.strict import StrictLab
from yarn_copilot.controller.steps import Step

REPLICAS: Final[dict[str, Any]] = {
    "leader_election": {"lease_duration_seconds": 4, "renew_deadline_seconds": 2.5, "retry_period_seconds": 0.25},
    "kubernetes": {"request_timeout_seconds": 2, "backoff_max_seconds": 1},
}
"""Two replicas that follow each other quickly; every deadline ends before the lease does."""

_STEP_SECONDS: Final = 180.0
"""No step is taken while the ResourceManager or the API server comes back, which a busy machine makes a minute of."""
_LEADER_SECONDS: Final = 60.0
_READY_SECONDS: Final = 180.0
_FROZEN_SECONDS: Final = 5.0


class Chaos:
    """Disturb a lab; every disturbance ends with all parts running again.

    Attributes:
        done: how often each disturbance was made; deaths are counted by step.
        missed: deaths whose step was not taken in time.
        killed_managers: node ids of the NodeManagers that were killed.
        crashes: sentences, one for each replica that ended although nobody killed it.
    """

    def __init__(self, found: StrictLab, death_file: Path, seed: int) -> None:
        """Start two replicas."""
        self._found = found
        self._death_file = death_file
        self.done: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.crashes: list[str] = []
        self.killed_managers: set[str] = set()
        program = Program(module="tests.lab.program", environment={"PROGRAM_DEATH": str(death_file)})
        self.replicas = [found.bridge.controller(REPLICAS, program=program).start() for _ in range(2)]
        for replica in self.replicas:
            replica.wait_ready(timeout_seconds=_READY_SECONDS)
        self.deaths: dict[str, Callable[[], None]] = {
            step.value: lambda step=step: self.die_at(step)  # type: ignore[misc]
            for step in Step
        }
        self.others: dict[str, Callable[[], None]] = {
            "leader frozen": self.freeze_leader,
            "resource manager killed": self.kill_resource_manager,
            "api server killed": self.kill_api_server,
            "node manager killed": self.kill_node_manager,
        }

        # Each chooses for itself, so that a seed chooses the same whichever comes first where two rows run at once.
        self._choices = {name: random.Random(f"chaos/{seed}/{name}") for name in self.disturbances}

    @property
    def disturbances(self) -> dict[str, Callable[[], None]]:
        """Give everything that can be done, by name."""
        return {**self.deaths, **self.others}

    def disturb_at_once(self, *rows: Iterable[str]) -> None:
        """Go through several rows of disturbances at the same time; the first error of each row ends it."""

        def go_through(row: Iterable[str]) -> None:
            for name in row:
                self.disturb(name)

        with ThreadPoolExecutor(len(rows)) as pool:
            for future in [pool.submit(go_through, row) for row in rows]:
                future.result()

    def disturb(self, name: str) -> None:
        """Make one disturbance and say so."""
        print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
        self.disturbances[name]()
        self.done[name] += 1

    def die_at(self, step: Step) -> None:
        """Let the leader die at a step, or shortly after it; the other replica goes on with the transfer."""
        choices = self._choices[step.value]
        Death(step, choices.randint(1, 2), choices.choice((0, 0, 1, 5))).write(self._death_file)
        try:
            self._wait(lambda: not all(each.is_running for each in self.replicas), f"{step} is taken", _STEP_SECONDS)
        except LabError:
            self._death_file.unlink(missing_ok=True)
            self.missed[step.value] += 1
        self._bring_back()

    def freeze_leader(self) -> None:
        """Stop the leader for longer than its lease lasts, then let it go on beside its successor."""
        leader = self._leader()
        leader.pause()
        time.sleep(_FROZEN_SECONDS)
        leader.resume()

    def kill_resource_manager(self) -> None:
        """Kill the ResourceManager and start it again; applications and containers are recovered."""
        yarn = self._found.bridge.lab.yarn
        yarn.stop_rm(kill=True)
        time.sleep(self._choices["resource manager killed"].uniform(0, 2))
        yarn.start_rm()
        yarn.wait_for_nodes()

    def kill_api_server(self) -> None:
        """Kill the API server and start it again."""
        kubernetes = self._found.bridge.lab.kubernetes
        kubernetes.stop_api_server(kill=True)
        time.sleep(self._choices["api server killed"].uniform(0, 2))
        kubernetes.start_api_server()

    def kill_node_manager(self) -> None:
        """Kill a NodeManager and start it again; it registers with its configured capacity, its containers live."""
        choices = self._choices["node manager killed"]
        manager = choices.choice(self._found.nodes).manager
        manager.kill()
        self.killed_managers.add(manager.node_id)
        time.sleep(choices.uniform(0, 1))
        manager.start()
        self._found.bridge.lab.yarn.wait_for_nodes([manager])

    def _leader(self) -> ControllerProcess:
        def find() -> ControllerProcess:
            for replica in self.replicas:
                if replica.is_running and replica.get("/api/v1/status").json()["leader"]:
                    return replica
            raise probes.NotReadyError("neither replica leads")

        return probes.wait_until(find, what="a replica leads", timeout_seconds=_LEADER_SECONDS)

    def _bring_back(self) -> None:
        for replica in self.replicas:
            if not replica.is_running:
                self._note_end(replica)
                replica.start()
                replica.wait_ready(timeout_seconds=_READY_SECONDS)

    def _note_end(self, replica: ControllerProcess) -> None:
        """Tell a death that was ordered from a crash: a replica that lost its lease goes on as a standby."""
        code = replica.process.exit_code
        if code != -signal.SIGKILL:
            self.crashes.append(f"{replica.name} ended with {code}\n{replica.process.tail()}")

    @staticmethod
    def _wait(condition: Callable[[], bool], what: str, seconds: float) -> None:
        probes.wait_until(condition, what=what, timeout_seconds=seconds, poll_seconds=0.02)
