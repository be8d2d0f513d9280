# SPDX-License-Identifier: Apache-2.0
"""Own all processes of one lab and end them together.

Three things see to it that nothing is left: the owner closes the group; each child is started with a parent death
signal; and a watchdog process, which notices the end of this process through a pipe, kills every member of the state
folder. Children are started from one thread that lives as long as the group, because the kernel sends the parent
death signal when the *thread* that started the child ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.errors import LabError
from lab.processes import members
from lab.processes.ports import PortClaims
from lab.processes.process import Command, ServerProcess
from lab.processes.state import StateFolder


class ProcessGroup:
    """Start the processes of a lab in its state folder and stop every one of them."""

    def __init__(self, state: StateFolder) -> None:
        self.state = state
        self.ports = PortClaims()
        self._spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lab-spawner")
        self._processes: list[ServerProcess] = []
        self._closing = False
        self._wrapper = death_signal_wrapper()
        self._watchdog = self._spawner.submit(self._start_watchdog).result()

    def add(self, command: Command) -> ServerProcess:
        """Make a process of the group; start it with its `start()`."""
        process = ServerProcess(command, self._launch)
        self._processes.append(process)
        return process

    def close(self) -> None:
        """Kill every process and every member of the state folder; safe to call twice.

        Raises:
            LabError: something could not be killed.
        """
        if self._watchdog.poll() is not None:
            return
        self._closing = True
        self._spawner.submit(lambda: None).result()  # what was being started when we were called is started now
        for process in reversed(self._processes):
            process.signal(signal.SIGKILL)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10.0)
            process.close_stdin()
        left = members.kill_members(self.state.path)
        self._stop_watchdog()
        self.ports.close()
        self._spawner.shutdown()
        if left:
            raise LabError(f"could not kill processes {left} of the lab in {self.state.path}")

    def _launch(self, command: Command) -> subprocess.Popen[bytes]:
        return self._spawner.submit(self._spawn, command).result()

    def _spawn(self, command: Command) -> subprocess.Popen[bytes]:
        if self._closing:
            raise LabError(f"the lab is being stopped: {command.name} is not started")
        command.log_path.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **command.environment, members.MEMBER_VARIABLE: str(self.state.path)}
        with command.log_path.open("ab") as log:
            child = subprocess.Popen(
                [*self._wrapper, *command.argv],
                stdin=subprocess.PIPE if command.has_stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE if command.captures_stdout else log,
                stderr=log,
                env=environment,
                cwd=command.working_directory or self.state.path,
                start_new_session=True,  # Ctrl-C at the terminal is for the lab, which then stops them in order
            )
        record = {"pid": child.pid, "argv": list(command.argv), "start_ticks": members.start_ticks_of(child.pid)}
        self.state.folder("pids").joinpath(f"{command.name}.json").write_text(json.dumps(record))
        return child

    def _start_watchdog(self) -> subprocess.Popen[bytes]:
        script = Path(__file__).with_name("watchdog.py")
        arguments = [str(self.state.path), "1" if self.state.is_temporary else "0", str(self.state.registry_entry)]
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _stop_watchdog(self) -> None:
        """End the watchdog through its pipe: it cleans up what is left and removes a temporary folder."""
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.close()
        self._watchdog.wait(60.0)


def death_signal_wrapper() -> list[str]:
    """Return the start of a command that makes a child die with its parent; empty without util-linux' setpriv."""
    path = shutil.which("setpriv")
    return [path, "--pdeathsig", "KILL", "--"] if path else []
