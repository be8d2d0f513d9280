# SPDX-License-Identifier: Apache-2.0
"""Take tasks out of the NodeManager's container in every hierarchy, so that they outlive it.

Parenting moves a task in the hierarchies that limit it. In the others it stays where it was born, in the group of the
NodeManager's container, and whoever ends that container ends all that he finds there: runc looks in `devices`
(libcontainer, signalAllProcesses: only without a PID namespace of its own), systemd in `name=systemd`, kubelet, which
cleans up after a pod, in all of them. So tasks go to YARN's directory in these too, together with the scripts that wait
for them: `default_container_executor.sh`, or container-executor, writes a task's exit code down when it has ended. What
bounds the container goes with them (`cgroup.carrying`).

On version 2 a task that has left one group has left them all. The scripts have not; they go to the group of the task
for which they wait, since the kernel has no processes beside groups with controllers.

It matters only in the machine's PID namespace; in another one the kernel ends everybody with PID 1.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup import groups
from nm_proxy.cgroup.carrying import CAP_SYS_ADMIN, DEVICES, carry, has_rules
from nm_proxy.cgroup.detection import Detection
from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.cgroup.files import Files
from nm_proxy.cgroup.hierarchy import Hierarchy
from nm_proxy.cgroup.layout import Version
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.parenting.belonging import Root
from nm_proxy.parenting.records import Record

PASS_SECONDS: Final = 0.05
"""A pass moves no longer than so, and the next one goes on: launches wait behind it, and their limits come first."""


def is_detaching(mode: ParentingMode, *, is_host_pid: bool) -> bool:
    """Tell whether tasks are to leave this program's container in every hierarchy.

    Not with an executor, which may have put them into groups of its own.
    """
    return mode is ParentingMode.ADOPT and is_host_pid


class OwnGroups:
    """Know in which groups this program's container is."""

    def __init__(self, detection: Detection, files: Files, processes: ProcessReader, *, own_pid: int | None = None):
        """Take what was found; `own_pid` is this process unless a test says otherwise."""
        self.own_pid = own_pid if own_pid is not None else os.getpid()
        self.hierarchies = (*detection.hierarchies.every, *detection.others)
        self._limiting_v2 = [one for one in detection.hierarchies.every if one.version is Version.V2]
        self._files = files
        self._own = processes.groups(self.own_pid)
        self._may_write_rules = processes.may(self.own_pid, CAP_SYS_ADMIN)

    def home(self, hierarchy: Hierarchy) -> str:
        """Give this program's group, relative to the hierarchy's root; empty is the root."""
        return next((path for names, path in self._own.items() if _is_of(names, hierarchy)), "")

    def is_here(self, hierarchy: Hierarchy) -> bool:
        """Tell whether the group is there and holds this program; not so in a cgroup namespace of its own.

        Raises:
            CgroupError: it cannot be looked at.
        """
        return self.own_pid in self.members(hierarchy)

    def members(self, hierarchy: Hierarchy) -> frozenset[int]:
        """List the processes of this program's group; one that is not there has none.

        Raises:
            CgroupError: it cannot be looked at.
        """
        return groups.members(self._files, hierarchy, self.home(hierarchy))

    def obstacles(self) -> Iterator[str]:
        """Say, for each hierarchy in which tasks could not leave the container, why."""
        for names, path in self._own.items():
            if path and not any(_is_of(names, one) for one in self.hierarchies):
                yield f"hierarchy {names or 'unified'} is not mounted below cgroup.root"
        for hierarchy in self.hierarchies:
            if hierarchy in self._limiting_v2:
                continue  # parenting itself takes tasks out of this container's group, wherever that is
            if hierarchy.read_only:
                yield f"{hierarchy.mount_point} is mounted read-only"
                continue
            try:
                if not self.is_here(hierarchy):
                    yield f"{hierarchy.mount_point} does not have this process where /proc/self/cgroup says"
                elif has_rules(self._files, hierarchy, self.home(hierarchy)) and self._may_write_rules is False:
                    yield "its device rules cannot be given to tasks without CAP_SYS_ADMIN"
            except CgroupError as error:
                yield str(error)


class Detacher:
    """Detach tasks, one pass at a time; belongs to the thread of the adopter."""

    def __init__(
        self,
        detection: Detection,
        files: Files,
        processes: ProcessReader,
        *,
        monotonic: Callable[[], float],
        own_pid: int | None = None,
    ) -> None:
        self._home = OwnGroups(detection, files, processes, own_pid=own_pid)
        self._yarn = detection.place.yarn
        self._files = files
        self._processes = processes
        self._monotonic = monotonic
        self._limiting = detection.hierarchies.every
        # Where runc looks comes first: a pass may end in the middle.
        self._others = sorted(detection.others, key=lambda one: DEVICES not in one.controllers)
        # What only limits (a service manager's slice of memory) is no container, which has groups in all. Where version
        # 2 limits, this program need not see its group, and whoever waits for a task goes to the task.
        self._is_needed = any(map(self._home.home, self._others)) or any(
            one.version is Version.V2 for one in self._limiting
        )
        self._waits: dict[Root, bool] = {}

    def detach(self, records: Mapping[str, Record]) -> None:
        """Move everyone who is still in the container's own group in some hierarchy, as far as there is time.

        Raises:
            CgroupError: of the first hierarchy in which it failed; the others were done.
        """
        if not self._is_needed:
            return
        launchers = self._launchers(records)
        inside = frozenset[int]().union(*(record.pids for record in records.values()))
        until = self._monotonic() + PASS_SECONDS
        failures: list[CgroupError] = []
        for hierarchy in (*self._others, *self._limiting):
            try:
                if hierarchy not in self._limiting:
                    self._leave(hierarchy, dict.fromkeys(inside | launchers.keys(), self._yarn), until)
                # Tasks are in groups of their own where they are limited; only those who wait for them are not.
                elif hierarchy.version is Version.V1:
                    self._leave(hierarchy, dict.fromkeys(launchers, self._yarn), until)
                else:
                    self._move(hierarchy, {pid: path for pid, path in launchers.items() if pid not in inside}, until)
            except CgroupError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _leave(self, hierarchy: Hierarchy, wanted: Mapping[int, str], until: float) -> None:
        """Move those who are in this program's group, each to the group that is given for it."""
        home = self._home.home(hierarchy)
        if not wanted or not home or f"{home}/".startswith(f"{self._yarn}/"):
            return
        members = self._home.members(hierarchy)
        leaving = wanted.keys() & members
        if not leaving or self._home.own_pid not in members:
            return
        if hierarchy not in self._limiting:
            self._prepare(hierarchy, home)
        self._move(hierarchy, {pid: wanted[pid] for pid in sorted(leaving)}, until)

    def _prepare(self, hierarchy: Hierarchy, home: str) -> None:
        groups.make_whole(self._files, hierarchy, self._yarn)
        if hierarchy.version is Version.V1:
            carry(self._files, hierarchy, home, self._yarn)

    def _move(self, hierarchy: Hierarchy, targets: Mapping[int, str], until: float) -> None:
        for pid, target in targets.items():
            if self._monotonic() > until:
                return
            groups.enter(self._files, hierarchy, target, pid)

    def _launchers(self, records: Mapping[str, Record]) -> dict[int, str]:
        """Find the ancestors of tasks that were started for one container alone, with that container's group."""
        waits: dict[Root, bool] = {}
        found: dict[int, str] = {}
        shared = Counter(one for record in records.values() for one in record.ancestors)
        for container_id, record in records.items():
            if not record.pids:
                continue
            for one in record.ancestors:
                # Who is an ancestor of several waits for none of them. In a task's group it would draw all others in.
                if shared[one] > 1:
                    continue
                known = self._waits.get(one)
                waits[one] = self._processes.names_container(one.pid, container_id) if known is None else known
                if waits[one] and self._is_launcher_yet(one):
                    found[one.pid] = record.path
        self._waits = waits
        return found

    def _is_launcher_yet(self, one: Root) -> bool:
        """Tell whether it is the same process, and leads no session: a NodeManager does, its scripts do not."""
        process = self._processes.process(one.pid)
        return process is not None and process.start_ticks == one.start_ticks and process.session != process.pid


def _is_of(names: str, hierarchy: Hierarchy) -> bool:
    if hierarchy.version is Version.V2:
        return not names
    return not hierarchy.controllers.isdisjoint(names.split(","))
