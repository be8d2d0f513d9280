# SPDX-License-Identifier: Apache-2.0
"""Look at processes in /proc: who descends from whom, who carries which container's id.

Every look is a snapshot that may be old when it returns; a process is identified by its number together with its
start time, because numbers are used again. Source: proc_pid_stat(5), proc_pid_environ(5), proc_pid_status(5).
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nm_proxy.nodemanager.errors import NodeManagerError

CONTAINER_ID_VARIABLE: Final = b"CONTAINER_ID="
"""ApplicationConstants.Environment.CONTAINER_ID, which every launch script of YARN exports."""

_ENVIRONMENT_LIMIT: Final = 2 * 1024 * 1024
_STAT_LIMIT: Final = 4096
_GONE_STATES: Final = (b"Z", b"X", b"x")


class Process(NamedTuple):
    """Hold one process.

    Attributes:
        pid: number in this PID namespace.
        parent: number of its parent; 1 (or a subreaper) once the parent ended.
        session: number of its session's leader.
        start_ticks: start in clock ticks since boot; with `pid` it is the identity.
    """

    pid: int
    parent: int
    session: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """Hold one look at all processes.

    Attributes:
        processes: by number; zombies are left out, they use nothing and cannot be moved.
        vanished: how many ended between being listed and being read.
    """

    processes: Mapping[int, Process]
    vanished: int = 0
    _children: dict[int, list[int]] = field(default_factory=dict)
    _members: dict[int, list[int]] = field(default_factory=dict)

    def descendants(self, roots: Iterable[int]) -> set[int]:
        """Collect processes and everyone below them; roots that do not exist are left out."""
        children = self._by_parent()
        found: set[int] = set()
        waiting = list(roots)
        while waiting:
            pid = waiting.pop()
            if pid in found:
                continue
            if pid in self.processes:
                found.add(pid)
            waiting.extend(child for child in children.get(pid, ()) if child not in found)
        return found

    def ancestors(self, pid: int) -> list[Process]:
        """List the parent of a process, the parent's parent and so on, as far as they are known."""
        found: list[Process] = []
        process = self.processes.get(pid)
        while process is not None and len(found) <= len(self.processes):
            process = self.processes.get(process.parent)
            if process is not None:
                found.append(process)
        return found

    def in_sessions(self, sessions: Iterable[int]) -> set[int]:
        """Collect the processes of sessions, which a double fork does not leave."""
        if not self._members:
            for process in self.processes.values():
                self._members.setdefault(process.session, []).append(process.pid)
        return {pid for session in sessions for pid in self._members.get(session, ())}

    def start_ticks(self, pid: int) -> int | None:
        """Give a process's start; None if it does not exist."""
        process = self.processes.get(pid)
        return process.start_ticks if process else None

    def is_alive(self, pid: int, start_ticks: int) -> bool:
        """Tell whether a number still means the process that started then."""
        return self.start_ticks(pid) == start_ticks

    def _by_parent(self) -> dict[int, list[int]]:
        if not self._children:
            children: defaultdict[int, list[int]] = defaultdict(list)
            for process in self.processes.values():
                children[process.parent].append(process.pid)
            self._children.update(children)
        return self._children


class ProcessReader:
    """Read /proc, or a directory of the same shape."""

    def __init__(self, root: str = "/proc", *, boot_time: Callable[[], float] | None = None) -> None:
        """Take the directory, and what tells the time of boot (`btime` of /proc/stat has whole seconds only)."""
        self._root = root
        self._boot_time = boot_time or _boot_time
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")

    def table(self) -> ProcessTable:
        """Read all processes; costs some ten microseconds for each.

        Raises:
            NodeManagerError: there is no /proc.
        """
        processes: dict[int, Process] = {}
        vanished = 0
        for pid in self._pids():
            content = self._content(pid, "stat", _STAT_LIMIT)
            if content is None:
                vanished += 1
                continue
            process = parse_stat(pid, content)
            if process is not None:
                processes[pid] = process
        return ProcessTable(processes, vanished)

    def process(self, pid: int) -> Process | None:
        """Read one process; None if it is gone or a zombie."""
        content = self._content(pid, "stat", _STAT_LIMIT)
        return None if content is None else parse_stat(pid, content)

    def container_id(self, pid: int) -> str | None:
        """Read which container's id a process was started with; None if none, or if it may not be read."""
        for entry in (self._content(pid, "environ", _ENVIRONMENT_LIMIT) or b"").split(b"\0"):
            if entry.startswith(CONTAINER_ID_VARIABLE):
                return entry[len(CONTAINER_ID_VARIABLE) :].decode("ascii", "replace")
        return None

    def command_names(self, pid: int, text: str) -> bool:
        """Tell whether a process's command line contains a text."""
        return text.encode() in (self._content(pid, "cmdline", _ENVIRONMENT_LIMIT) or b"")

    def names_container(self, pid: int, container_id: str) -> bool:
        """Tell whether a process was started for a container: its id is in the environment or the command line."""
        return self.container_id(pid) == container_id or self.command_names(pid, container_id)

    def groups(self, pid: int) -> dict[str, str]:
        """Read in which cgroup a process is, by the names of controllers of each hierarchy, comma-separated.

        Shape of a line: `4:cpu,cpuacct:/path`; version 2 has an empty name. Paths are relative to the hierarchy's root
        and here without leading slash; empty where the process is gone.
        """
        text = (self._content(pid, "cgroup", _ENVIRONMENT_LIMIT) or b"").decode("utf-8", "surrogateescape")
        fields = (line.split(":", 2) for line in text.splitlines())
        return {one[1]: one[2].strip("/") for one in fields if len(one) == 3}

    def may(self, pid: int, capability: int) -> bool | None:
        """Tell whether a process has a capability in force, by its number in capabilities(7); None if it is not told.

        Shape of the line in `status`: `CapEff:\t` and 16 hexadecimal digits, bit N for capability N.
        """
        for line in (self._content(pid, "status", _ENVIRONMENT_LIMIT) or b"").splitlines():
            name, _, mask = line.partition(b":")
            if name == b"CapEff":
                with contextlib.suppress(ValueError):
                    return bool(int(mask, 16) >> capability & 1)
        return None

    def started_at(self, start_ticks: int) -> float:
        """Turn a start into seconds since 1970, never later than it really was and at most a tick earlier."""
        return self._boot_time() + start_ticks / self._ticks_per_second

    def _pids(self) -> list[int]:
        try:
            with os.scandir(self._root) as entries:
                return [int(entry.name) for entry in entries if entry.name.isdigit()]
        except OSError as error:
            raise NodeManagerError(f"cannot list processes in {self._root} ({error.strerror}); mount /proc") from error

    def _content(self, pid: int, name: str, limit: int) -> bytes | None:
        try:
            descriptor = os.open(f"{self._root}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            content = os.read(descriptor, limit)
            if limit == _STAT_LIMIT:
                return content  # one line, which the kernel gives in one go; asking for more costs as much again
            while content and len(content) < limit and (piece := os.read(descriptor, limit - len(content))):
                content += piece
        except OSError:
            return None
        finally:
            os.close(descriptor)
        return content


def _boot_time() -> float:
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def parse_stat(pid: int, content: bytes) -> Process | None:
    """Read /proc/PID/stat; None for a zombie and for anything that is not of its shape.

    The second field is the command in brackets and may hold blanks and brackets itself, so counting starts behind the
    last bracket: state, parent, group, session (fields 3 to 6), threads (20), start (22). A dead leader whose threads
    live on has the state of a zombie and more than one thread; it counts.
    """
    fields = content[content.rfind(b")") + 1 :].split()
    try:
        if fields[0] in _GONE_STATES and int(fields[17]) <= 1:
            return None
        return Process(pid=pid, parent=int(fields[1]), session=int(fields[3]), start_ticks=int(fields[19]))
    except (IndexError, ValueError):
        return None
