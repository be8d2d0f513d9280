# SPDX-License-Identifier: Apache-2.0
"""Tell which processes belong to which container.

A process belongs if it descends from the process of the pid file or from anyone who is inside already, if it is in
the session of the former (a double fork loses the parent, not the session), or, for orphans with a session of their
own, if it was started with the container's id in its environment. Never moved: this program, its ancestors, process 1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from nm_proxy.nodemanager.pid_files import PidFile
from nm_proxy.nodemanager.processes import Process, ProcessReader, ProcessTable

LAUNCH_WINDOW_SECONDS: Final = 30.0
"""The first thing that a launch does is to write the pid file; a process much older or younger is another one."""

CLOCK_SLACK_SECONDS: Final = 0.1
"""File times move in steps of a tick, starts of processes in hundredths."""

_FIRST_RECHECK_SECONDS: Final = 0.5
_LAST_RECHECK_SECONDS: Final = 64.0


@dataclass(frozen=True, slots=True)
class Root:
    """Hold the first process of a container: number and start time are its identity."""

    pid: int
    start_ticks: int


class Strangers:
    """Remember who was asked for a container's id, so that each process's environment is read only a few times.

    A process that carries none can still replace itself by a program that does (exec), so it is asked again, after
    times that double. One that carries an id keeps it: what was read is the environment of its start.
    """

    def __init__(self, processes: ProcessReader, monotonic: Callable[[], float]) -> None:
        self._processes = processes
        self._monotonic = monotonic
        self._carriers: dict[Root, str] = {}
        self._next_ask: dict[Root, tuple[float, float]] = {}

    def carriers(self, table: ProcessTable, known: frozenset[int]) -> dict[str, set[int]]:
        """Find processes by the container id in their environment.

        Args:
            table: a look at all processes.
            known: processes that need no asking, because they are inside a group.
        """
        now = self._monotonic()
        alive = {Root(process.pid, process.start_ticks) for process in table.processes.values()}
        self._forget(alive)
        found: dict[str, set[int]] = {}
        for one in alive:
            if one.pid in known:
                continue
            container_id = self._carriers.get(one) or self._ask(one, now)
            if container_id is not None:
                found.setdefault(container_id, set()).add(one.pid)
        return found

    def _ask(self, one: Root, now: float) -> str | None:
        due, wait = self._next_ask.get(one, (0.0, _FIRST_RECHECK_SECONDS))
        if now < due:
            return None
        container_id = self._processes.container_id(one.pid)
        if container_id is None:
            self._next_ask[one] = (now + wait, min(wait * 2, _LAST_RECHECK_SECONDS))
            return None
        self._next_ask.pop(one, None)
        self._carriers[one] = container_id
        return container_id

    def _forget(self, alive: set[Root]) -> None:
        for gone in self._carriers.keys() - alive:
            del self._carriers[gone]
        for gone in self._next_ask.keys() - alive:
            del self._next_ask[gone]


class BelongingLook:
    """Satisfy `gathering.Look`: one look at all processes, from which each group takes its own."""

    def __init__(
        self,
        table: ProcessTable,
        *,
        roots: Mapping[str, Root],
        carriers: Mapping[str, set[int]],
        excluded: frozenset[int],
    ) -> None:
        """Take a look apart.

        Args:
            table: the look.
            roots: first process by group path; one whose number means another process now is not followed.
            carriers: processes by group path, found by their environment.
            excluded: never to be moved.
        """
        self._table = table
        self._roots = roots
        self._carriers = carriers
        self._excluded = excluded

    @property
    def is_sure(self) -> bool:
        """Tell whether nobody vanished."""
        return self._table.vanished == 0

    def belonging(self, path: str, inside: frozenset[int]) -> frozenset[int]:
        """Tell who belongs to a group."""
        found = set(inside)
        root = self._roots.get(path)
        if root is not None:
            if self._table.start_ticks(root.pid) in (root.start_ticks, None):
                # The kernel does not hand a session's number out again while anybody is in it.
                found |= self._table.in_sessions((root.pid,))
            if self._table.start_ticks(root.pid) == root.start_ticks:
                found.add(root.pid)
        found |= self._carriers.get(path, set())
        return frozenset(self._table.descendants(found) - self._excluded)


def root_of(file: PidFile, processes: ProcessReader) -> Root | None:
    """Believe a pid file, or not.

    A NodeManager that died leaves its files behind, the number may mean another process by now, and the file belongs
    to a user that is not root. So the process must have started when the file was written, or carry the container's id
    in its environment or command line (the launch script's path has it).

    Returns:
        The identity of the process; None if there is none or it is not believed.
    """
    process = processes.process(file.pid)
    if process is None:
        return None
    if not (_fits_in_time(file, process, processes) or processes.names_container(file.pid, file.container_id)):
        return None
    return Root(process.pid, process.start_ticks)


def own_processes(processes: ProcessReader) -> frozenset[int]:
    """List what must never be moved: process 1, this process and its ancestors."""
    found = {0, 1}
    pid = os.getpid()
    while pid not in found:
        found.add(pid)
        process = processes.process(pid)
        pid = process.parent if process is not None else 0
    return frozenset(found)


def _fits_in_time(file: PidFile, process: Process, processes: ProcessReader) -> bool:
    age = file.written_at - processes.started_at(process.start_ticks)
    return -CLOCK_SLACK_SECONDS <= age <= LAUNCH_WINDOW_SECONDS
