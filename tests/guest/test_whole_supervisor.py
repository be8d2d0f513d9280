# SPDX-License-Identifier: Apache-2.0
"""Test init, supervisor and agent as real processes on cgroup version 2: whoever dies, tasks stay where they are.

One long life, because each start of the supervisor costs an emulated processor seconds.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.node.machine import MARK, Machine, carriers_of, container_id
from lab.node.stand_in import FINISHED_FILE, MEMORY_MIB
from lab.node.supervised import INIT, INIT_ITSELF, OWN_PID_NAMESPACE, SUPERVISOR, Supervised, number_of

STAND_IN = "lab.node.stand_in"
LIMIT = f"{MEMORY_MIB << 20}\n"
WAIT_SECONDS = 120.0


class Node:
    """Hold a folder in which nm-proxy runs again and again, and the tasks of its NodeManager."""

    def __init__(self, folder: Path, machine: Machine, tasks: tuple[int, ...]) -> None:
        self.folder, self.machine, self.tasks = folder, machine, tasks
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            self.port = holder.getsockname()[1]
        java = folder / "java/bin/java"
        java.parent.mkdir(parents=True)
        java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
        java.chmod(0o755)
        os.environ["JAVA_HOME"] = str(folder / "java")
        self.begin: dict[int, set[int]] = {}

    @contextlib.contextmanager
    def run(self, *prefix: str) -> Iterator[Supervised]:
        """Start init with all that is below it."""
        ids = [container_id(number) for number in self.tasks]
        one = Supervised(
            self.folder,
            self.machine,
            command=[sys.executable, "-m", STAND_IN, str(self.folder), str(self.port), *ids],
            entry=INIT_ITSELF,
            prefix=prefix,
            sections={
                "node_manager": {
                    "url": f"http://127.0.0.1:{self.port}",
                    "local_directories": [str(self.folder / "local")],
                    "timeout_seconds": 20.0,
                },
                "recovery": {"enabled": True, "directory": str(self.folder / "recovery")},
                "lingering": {"finished_delay_seconds": 5.0},
                "stop": {"grace_seconds": 300.0},
            },
        )
        try:
            yield one
        finally:
            one.end()

    def group(self, number: int) -> Path:
        return Path(self.machine.hierarchies.every[0].at(self.machine.path(number)))

    def processes(self, number: int) -> set[int]:
        """Give a task's processes, each of which the kernel says is in the task's group."""
        found = self.machine.carriers(number)
        assert self.machine.outside(number) == {}
        return found

    def wait_inside(self) -> None:
        """Wait until each task is in its group, with its weight and limit."""
        for number in self.tasks:
            self.wait(lambda at=number: len(self.machine.carriers(at)) == 2 and self._is_inside(at))
            self.begin[number] = self.processes(number)

    def check_tasks(self, *numbers: int) -> None:
        """Check that these tasks are the processes that they were from the start, in their groups, limited."""
        for number in numbers:
            assert self.processes(number) == self.begin[number]
            assert self._is_inside(number)

    def check_repairs(self, number: int) -> None:
        """Check that an agent is at work."""
        limit = self.group(number) / "memory.max"
        limit.write_text("max")
        self.wait(lambda: limit.read_text() == LIMIT)

    def kill_over_socket(self, number: int) -> None:
        """Let the copilot API kill one container."""
        body = json.dumps({"containerID": container_id(number)})
        connection = http.client.HTTPConnection("localhost", timeout=WAIT_SECONDS)
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(WAIT_SECONDS)
        connection.sock.connect(str(self.folder / "socket/s"))
        connection.request("POST", "/v1/killContainer", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, text

    def _is_inside(self, number: int) -> bool:
        group = self.group(number)
        try:
            values = (group / "memory.max").read_text(), (group / "cpu.weight").read_text()
        except OSError:
            return False
        return values == (LIMIT, "200\n") and not self.machine.outside(number)

    @staticmethod
    def wait(holds: object) -> None:
        Machine.wait_for(holds, WAIT_SECONDS)


def alive(machine: Machine, pid: int) -> bool:
    return pid in carriers_of(f"{MARK}={machine.name}")


@pytest.fixture
def node(tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Node:
    """Prepare a node with four tasks."""
    monkeypatch.setenv("JAVA_HOME", "")  # put back afterwards
    return Node(tmp_path, machine, (2, 3, 4, 5))


def test_whoever_dies_tasks_live_on_in_their_groups_and_a_stop_drains(node: Node, machine: Machine) -> None:
    with node.run() as first:
        first.wait_text("node manager")
        node.wait_inside()
        parent = node.group(2).parent
        node.wait(lambda: (parent / "cpu.weight").read_text() == "313\n")  # 1 + 8190 * 9999 / 262142: eight vcores

        os.kill(number_of(machine, SUPERVISOR), signal.SIGKILL)
        first.wait_text("Took over a running NodeManager")
        node.check_repairs(2)
        node.check_tasks(2, 3, 4, 5)
        assert first.text().count("node manager") == 1

        os.kill(number_of(machine, STAND_IN), signal.SIGKILL)
        first.wait_text("found 4 tasks again")
        first.wait_text("node manager", 2)
        assert "The NodeManager is started again after a wait" in first.text()
        node.check_tasks(2, 3, 4, 5)

        supervisor, node_manager = number_of(machine, SUPERVISOR), number_of(machine, STAND_IN)
        os.kill(number_of(machine, INIT), signal.SIGKILL)
        node.wait(lambda: not alive(machine, supervisor))
        first.process.wait(WAIT_SECONDS)
        assert number_of(machine, STAND_IN) == node_manager
        node.check_tasks(2, 3, 4, 5)

        with node.run() as second:
            second.wait_text("Took over a running NodeManager")
            node.check_repairs(3)
            node.kill_over_socket(4)
            (node.folder / FINISHED_FILE).write_text(container_id(5))
            node.wait(lambda: not machine.carriers(4) and not machine.carriers(5))
            node.check_tasks(2, 3)
            second.process.send_signal(signal.SIGTERM)
            second.wait_text("Waiting for containers")
            node.check_tasks(2, 3)
            for number in (2, 3):
                for pid in node.begin[number]:
                    # A task's shell ends by itself once what it waits for was killed.
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            assert second.process.wait(WAIT_SECONDS) == 0
            text = second.text()
            words = [
                text.index(part) for part in ("No container is left", "asked to stop", "The NodeManager has stopped")
            ]
            assert words == sorted(words)
            assert "node manager" not in text, "it started a second NodeManager"
            assert carriers_of(f"{MARK}={machine.name}") == set()


def test_tasks_in_a_pid_namespace_end_with_its_first_process_and_leave_empty_groups(
    node: Node, machine: Machine
) -> None:
    with node.run(*OWN_PID_NAMESPACE) as one:
        one.wait_text("node manager")
        node.wait_inside()
        os.kill(number_of(machine, INIT), signal.SIGKILL)
        node.wait(lambda: not carriers_of(f"{MARK}={machine.name}"))
        for number in node.tasks:
            assert "populated 0" in (node.group(number) / "cgroup.events").read_text()
