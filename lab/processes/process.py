# SPDX-License-Identifier: Apache-2.0
"""Run one server process: start, stop, kill, freeze, and read the end of its log.

A process may be started again after it ended; its log file is appended to. One owner thread at a time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lab.errors import LabError

_TAIL_BYTES: Final = 16_384
_STOP_SECONDS: Final = 10.0
_STOP_POLL_SECONDS: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Describe how to start a server."""

    name: str
    argv: Sequence[str]
    log_path: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    working_directory: Path | None = None
    has_stdin: bool = False
    stdout_path: Path | None = None
    captures_stdout: bool = False


Launch = Callable[[Command], "subprocess.Popen[bytes]"]


class ServerProcess:
    """Control one server; `launch` is the process group's way to start a child."""

    def __init__(self, command: Command, launch: Launch) -> None:
        self.command = command
        self._launch = launch
        self._child: subprocess.Popen[bytes] | None = None
        self.interruptions = 0
        """How often it was stopped, killed or frozen; who is connected to it may have missed something since."""

    @property
    def name(self) -> str:
        """Name the server as messages do."""
        return self.command.name

    @property
    def log_path(self) -> Path:
        """Tell where standard output and error go."""
        return self.command.log_path

    @property
    def pid(self) -> int | None:
        """Return the pid while the process lives."""
        return self._child.pid if self._child is not None and self._child.poll() is None else None

    @property
    def is_running(self) -> bool:
        """Tell whether the process lives (a frozen one does)."""
        return self.pid is not None

    @property
    def exit_code(self) -> int | None:
        """Return the exit code of the last run (negative: the signal), None while it runs or before the first."""
        return None if self._child is None else self._child.poll()

    @property
    def child(self) -> subprocess.Popen[bytes]:
        """Return the child process with its pipes.

        Raises:
            LabError: it was never started.
        """
        if self._child is None:
            raise LabError(f"{self.name} was not started")
        return self._child

    def start(self) -> None:
        """Start the process; readiness is for a probe to tell.

        Raises:
            LabError: it runs already, or the program cannot be executed.
        """
        if self.is_running:
            raise LabError(f"{self.name} runs already (pid {self.pid})")
        try:
            self._child = self._launch(self.command)
        except OSError as error:
            raise LabError(f"cannot start {self.name} ({self.command.argv[0]}): {error}") from error

    def stop(self, *, timeout_seconds: float = 15.0) -> None:
        """Send SIGTERM, wait, and send SIGKILL to one that does not end in time."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            self.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL and reap the process."""
        self.signal(signal.SIGKILL)
        self.wait(10.0)

    def pause(self) -> None:
        """Freeze the process with SIGSTOP: its connections stay open and nothing is answered.

        Returns when every thread has stopped: on a loaded machine some of them still answer after the signal.

        Raises:
            LabError: one has not stopped in time.
        """
        self.signal(signal.SIGSTOP)
        deadline = time.monotonic() + _STOP_SECONDS
        while self.pid is not None and not _is_stopped(self.pid):
            if time.monotonic() > deadline:
                raise LabError(f"{self.name} has not stopped {_STOP_SECONDS:g} s after SIGSTOP")
            time.sleep(_STOP_POLL_SECONDS)

    def resume(self) -> None:
        """Let a frozen process go on."""
        self.signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if the process lives."""
        pid = self.pid
        if pid is not None:
            self.interruptions += number is not signal.SIGCONT
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def close_stdin(self) -> None:
        """Close the writing end of standard input, if there is one."""
        if self._child is not None and self._child.stdin is not None:
            with contextlib.suppress(OSError):  # what was not written yet has no reader any more
                self._child.stdin.close()

    def wait(self, timeout_seconds: float) -> None:
        """Wait for the end of the process; `subprocess.TimeoutExpired` when it lasts longer."""
        if self._child is not None:
            self._child.wait(timeout_seconds)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the log, for an error message."""
        return tail_of(self.log_path, lines)


def tail_of(path: Path, lines: int = 20) -> str:
    """Return the last lines of a text file; an empty text when there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _TAIL_BYTES))
            text = stream.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _is_stopped(pid: int) -> bool:
    """Tell whether all threads of a process are stopped (field 3 of /proc/PID/task/TID/stat); a gone one is."""
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # the thread has ended meanwhile
            if stat.read_text().rpartition(")")[2].split()[0] not in {"T", "t", "Z", "X"}:
                return False
    return True
