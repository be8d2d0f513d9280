# SPDX-License-Identifier: Apache-2.0
"""Start a NodeManager so that a later supervisor can take it over, watch it, signal it.

The child writes its own line of /proc/PID/stat into the state file before it becomes the NodeManager: number and
start time are its identity, and no moment exists in which it runs unrecorded. It is the leader of a session of its
own, so that a terminal's Ctrl-C reaches the supervisor alone. Its output is inherited: logs pass through, and go on
when the supervisor is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from nm_proxy.nodemanager.processes import Process, ProcessReader, parse_stat
from yarn_copilot.errors import YarnCopilotError

STATE_FILE: Final = "nodemanager.stat"
_RECORD_BYTES: Final = 4096
_LAUNCH: Final = 'cat "/proc/$$/stat" >&0 && exec "$@" </dev/null'
"""Standard input is the state file at first: the one descriptor with a number that every shell can name."""


class LaunchError(YarnCopilotError):
    """Say that the NodeManager could not be started at all."""


class NodeManagerProcess:
    """Hold one running NodeManager; belongs to one event loop."""

    def __init__(self, pid: int, start_ticks: int, *, child: subprocess.Popen[bytes] | None) -> None:
        """Watch a process by a pidfd, whether it is our child or was a former supervisor's.

        Raises:
            ProcessLookupError: it is gone.
        """
        self.pid = pid
        self.start_ticks = start_ticks
        self._child = child
        self.exited = asyncio.Event()
        self._descriptor: int | None = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._descriptor, self._note_exit)

    @property
    def is_taken_over(self) -> bool:
        """Tell whether a former supervisor started it."""
        return self._child is None

    def signal(self, number: signal.Signals, *, is_alone: bool = False) -> None:
        """Signal the NodeManager and what a wrapper script left in its group; containers have sessions of their own.

        Args:
            number: which one.
            is_alone: signal nobody else. In its group are also the scripts that launch containers and wait for them,
                which containers that outlive it need.
        """
        if not self.exited.is_set():
            with contextlib.suppress(ProcessLookupError):
                if is_alone:
                    os.kill(self.pid, number)
                else:
                    os.killpg(self.pid, number)

    def how_it_ended(self) -> str:
        """Say it in words; the status of a process that was taken over is known to init alone."""
        if self._child is None:
            return "unknown"
        code = self._child.wait()
        return f"signal {-code}" if code < 0 else f"code {code}"

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _note_exit(self) -> None:
        self.close()
        self.exited.set()


class Launcher:
    """Start NodeManagers of one command, and find one that runs already."""

    def __init__(self, command: Sequence[str], *, state_dir: Path, user: str | None) -> None:
        self._command = list(command)
        self._file = state_dir / STATE_FILE
        self._user = user

    def start(self, environ: Mapping[str, str]) -> NodeManagerProcess:
        """Start one.

        Raises:
            LaunchError: the state directory cannot be written, the user does not exist, or there is no shell.
        """
        user = _ids(self._user)
        with self._open_state() as state:
            try:
                child = subprocess.Popen(  # noqa: S603 - the image's own command
                    ["/bin/sh", "-c", _LAUNCH, "nm-proxy", *self._command],
                    stdin=state,
                    start_new_session=True,
                    env=dict(environ),
                    user=user.uid,
                    group=user.gid,
                    extra_groups=user.groups,
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise LaunchError(f"cannot start {self._command[0]} by way of /bin/sh: {error}") from error
        process = ProcessReader().process(child.pid)
        # Not reaped before the wait, so the number is surely its; a zombie has no start time any more.
        return NodeManagerProcess(child.pid, process.start_ticks if process else 0, child=child)

    def _open_state(self) -> BinaryIO:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
            return _state_file(self._file)
        except OSError as error:
            raise LaunchError(
                f"{self._file}: cannot be written ({error.strerror or error}); supervisor.state_dir must be a "
                "directory that nm-proxy may write and that has room"
            ) from error

    def find_running(self) -> NodeManagerProcess | None:
        """Find the NodeManager that a former supervisor of this container started; None if it is gone."""
        now = recorded_alive(self._file.parent)
        if now is None:
            return None
        try:
            return NodeManagerProcess(now.pid, now.start_ticks, child=None)
        except ProcessLookupError:
            return None


def _state_file(path: Path) -> BinaryIO:
    """Open the state file without a valid record in it, and with room for one even if the disk fills up meanwhile."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(descriptor, b"\n", 0)
        os.posix_fallocate(descriptor, 0, _RECORD_BYTES)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "r+b")


def recorded_alive(state_dir: Path) -> Process | None:
    """Find the process that the state file names, if it is still that one."""
    try:
        line, whole, _ = (state_dir / STATE_FILE).read_bytes().partition(b"\n")
    except OSError:
        return None
    pid_text = line.split(b" ", 1)[0]
    if not pid_text.isdigit() or not whole:
        return None
    written = parse_stat(int(pid_text), line)
    now = ProcessReader().process(int(pid_text))
    return now if written is not None and now is not None and now.start_ticks == written.start_ticks else None


def is_recorded_alive(state_dir: Path) -> bool:
    """Tell whether a NodeManager of a former supervisor runs."""
    return recorded_alive(state_dir) is not None


class _User(NamedTuple):
    uid: int | None = None
    gid: int | None = None
    groups: list[int] | None = None


def _ids(user: str | None) -> _User:
    if user is None:
        return _User()
    try:
        entry = pwd.getpwnam(user)
    except KeyError as error:
        raise LaunchError(
            f"hadoop.user: the user {user!r} does not exist in this container; add it to the image or name another one"
        ) from error
    return _User(entry.pw_uid, entry.pw_gid, os.getgrouplist(user, entry.pw_gid))
