# SPDX-License-Identifier: Apache-2.0
"""Hold made-up processes and show them as /proc does, in a directory."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TICKS_PER_SECOND: Final = 100
INIT: Final = 1


@dataclass(slots=True, kw_only=True)
class FakeProcess:
    """Hold one process; `groups` has its group's path for each mount point."""

    pid: int
    parent: int
    session: int
    start_ticks: int
    environment: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    is_unkillable: bool = False
    is_doomed: bool = False
    is_foreign: bool = False


class FakeProcesses:
    """Be the process table; `directory` looks like /proc to whoever reads stat, environ and cmdline."""

    def __init__(self, directory: Path, *, boot_time: float = 0.0) -> None:
        self.directory = directory
        self.boot_time = boot_time
        self.now_ticks = 1000
        self.by_pid: dict[int, FakeProcess] = {}
        self._next_pid = 100
        directory.mkdir(parents=True, exist_ok=True)
        self._add(FakeProcess(pid=INIT, parent=0, session=INIT, start_ticks=1, command=["init"]))

    def start(
        self,
        *,
        parent: int = INIT,
        session: int | None = None,
        environment: dict[str, str] | None = None,
        command: list[str] | None = None,
        pid: int | None = None,
    ) -> FakeProcess:
        """Start a process that is born where its parent is; None for the session makes it a leader."""
        number = pid if pid is not None else self._number()
        process = FakeProcess(
            pid=number,
            parent=parent,
            session=number if session is None else session,
            start_ticks=self.now_ticks,
            environment=dict(environment or {}),
            command=list(command or ["task"]),
            groups=dict(self.by_pid[parent].groups),
        )
        self._add(process)
        return process

    def fork(self, pid: int, *, new_session: bool = False) -> FakeProcess:
        """Let a process fork."""
        parent = self.by_pid[pid]
        return self.start(
            parent=pid,
            session=None if new_session else parent.session,
            environment=parent.environment,
            command=parent.command,
        )

    def exit(self, pid: int) -> None:
        """End a process; its children become those of process 1."""
        process = self.by_pid.pop(pid, None)
        if process is None:
            return
        shutil.rmtree(self.directory / str(pid), ignore_errors=True)
        for child in self.by_pid.values():
            if child.parent == pid:
                child.parent = INIT
                self._write_stat(child)

    def members(self, mount_point: str, path: str) -> list[FakeProcess]:
        """List the processes of one group."""
        return [process for process in self.by_pid.values() if process.groups.get(mount_point, "") == path]

    def _number(self) -> int:
        while self._next_pid in self.by_pid:
            self._next_pid += 1
        self._next_pid += 1
        return self._next_pid - 1

    def _add(self, process: FakeProcess) -> None:
        self.by_pid[process.pid] = process
        folder = self.directory / str(process.pid)
        folder.mkdir(parents=True, exist_ok=True)
        environment = "".join(f"{name}={value}\0" for name, value in process.environment.items())
        (folder / "environ").write_bytes(environment.encode())
        (folder / "cmdline").write_bytes("\0".join(process.command).encode() + b"\0")
        self._write_stat(process)

    def _write_stat(self, process: FakeProcess) -> None:
        fields = ["S", process.parent, process.session, process.session, *([0] * 13), 1, 0, process.start_ticks, 0]
        text = f"{process.pid} (a (odd) name) {' '.join(map(str, fields))}\n"
        (self.directory / str(process.pid) / "stat").write_text(text)
