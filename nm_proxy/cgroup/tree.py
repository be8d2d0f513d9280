# SPDX-License-Identifier: Apache-2.0
"""Change groups in the tree: make, remove, fill, weigh and limit them, the same way for both versions.

Paths of groups are relative to a hierarchy's root; a group of version 1 is one directory in each hierarchy in use.
Every operation is idempotent and safe to repeat. Nothing here waits except where the kernel does (moving a process
can take some milliseconds, lowering a version 1 memory limit reclaims), so callers keep it off the event loop.
cpu quota, cpuset of existing groups and group identity belong to koordlet and are never written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nm_proxy.cgroup import groups, weights
from nm_proxy.cgroup.errors import (
    GroupBusyError,
    GroupGoneError,
    InternalProcessError,
    NotDelegatedError,
    PermissionDeniedError,
    ValueRefusedError,
)
from nm_proxy.cgroup.files import Files, KernelFiles
from nm_proxy.cgroup.groups import PROCS
from nm_proxy.cgroup.hierarchy import FREEZER, Hierarchies, Hierarchy
from nm_proxy.cgroup.layout import Version
from nm_proxy.container_ids import is_container_id

_WANTED_V2: Final = ("cpuset", "cpu", "io", "memory", "pids")
_SEED_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Hold the values of a group that are ours.

    Attributes:
        cpu: `cpu.shares` (v1) or `cpu.weight` (v2), whichever the group has.
        memory_bytes: the limit; None is unlimited.
    """

    cpu: int | None
    memory_bytes: int | None


class CgroupTree:
    """Be all groups below the mounted hierarchies.

    Safe for several threads, except that two must not fill the same group at once.
    """

    def __init__(self, hierarchies: Hierarchies, files: Files | None = None) -> None:
        self.hierarchies = hierarchies
        self.files = files or KernelFiles()

    @property
    def version(self) -> Version:
        """Give the version of the hierarchy that limits memory."""
        return self.hierarchies.version

    # Groups

    def prepare_parent(self, path: str) -> bool:
        """Make the directory of all containers usable: present everywhere, with cpus (v1) or controllers (v2).

        Args:
            path: at depth one below kubelet's best-effort directory.

        Returns:
            Whether anything had to be changed.

        Raises:
            CgroupError: see the subclasses; nothing of kubelet's was changed.
        """
        changed = False
        for hierarchy in self.hierarchies.every:
            changed |= self._make(hierarchy, path)
            if hierarchy.version is Version.V2:
                changed |= self._delegate(hierarchy, path)
        return changed

    def create(self, path: str) -> bool:
        """Make a group in every hierarchy and tell whether any directory is new.

        Raises:
            GroupGoneError: the parent is missing.
        """
        made = [self._make(hierarchy, path) for hierarchy in self.hierarchies.every]
        return any(made)

    def exists(self, path: str) -> bool:
        """Tell whether a group is in every hierarchy."""
        return all(self.files.exists(hierarchy.at(path)) for hierarchy in self.hierarchies.every)

    def exists_anywhere(self, path: str) -> bool:
        """Tell whether a group is in at least one hierarchy."""
        return any(self.files.exists(hierarchy.at(path)) for hierarchy in self.hierarchies.every)

    def remove(self, path: str) -> None:
        """Remove an empty group from every hierarchy; where it is gone already, that is fine.

        Raises:
            GroupBusyError: processes or groups are in it; other hierarchies may have lost theirs.
        """
        for hierarchy in self.hierarchies.every:
            try:
                self.files.remove_directory(hierarchy.at(path))
            except GroupGoneError:
                continue

    def containers(self, path: str) -> set[str]:
        """List the container groups directly below one, from all hierarchies; absent is empty."""
        return self.containers_by_hierarchy(path)[0]

    def containers_by_hierarchy(self, path: str) -> tuple[set[str], set[str]]:
        """List the container groups that are in any hierarchy, and those that are in every one."""
        anywhere: set[str] = set()
        everywhere: set[str] | None = None
        for hierarchy in self.hierarchies.every:
            try:
                here = set(filter(is_container_id, self.files.directories(hierarchy.at(path))))
            except GroupGoneError:
                here = set()
            anywhere |= here
            everywhere = here if everywhere is None else everywhere & here
        return anywhere, everywhere or set()

    def age_seconds(self, path: str, now: float) -> float:
        """Tell the age of the group's youngest directory by the wall clock; a missing group is new."""
        ages = []
        for hierarchy in self.hierarchies.every:
            try:
                ages.append(self.files.age_seconds(hierarchy.at(path), now))
            except GroupGoneError:
                continue
        return min(ages, default=0.0)

    # Processes

    def members(self, path: str) -> dict[str, frozenset[int]]:
        """List the processes of a group in each hierarchy, by mount point; 0 stands for other PID namespaces."""
        return {one.mount_point: groups.members(self.files, one, path) for one in self.hierarchies.every}

    def last_members(self, path: str) -> dict[str, frozenset[int]]:
        """List the processes of a group in the hierarchy that `move` enters last."""
        last = self.hierarchies.every[-1]
        return {last.mount_point: groups.members(self.files, last, path)}

    def processes(self, path: str) -> frozenset[int]:
        """List the processes of a group in any hierarchy; a missing group has none."""
        return frozenset().union(*self.members(path).values())

    def move(self, path: str, pids: Iterable[int], present: Mapping[str, frozenset[int]] | None = None) -> int:
        """Put processes into a group in every hierarchy where they are not yet, always in the same order.

        Args:
            path: an existing group.
            pids: processes by this PID namespace; each moves with all its threads.
            present: what `members` said just now, to save reading it again; or `last_members`, which spares those
                who are in the last hierarchy, and moves the others wherever they are.

        Returns:
            How many writes changed something. Processes that ended meanwhile are passed over.

        Raises:
            CgroupError: the group is gone, or may not be written; some processes may have moved.
        """
        wanted = frozenset(pids)
        current = self.members(path) if present is None else present
        writes = 0
        last = self.hierarchies.every[-1].mount_point
        for pid in wanted:
            if len(current) == 1 and pid in current.get(last, ()):
                continue
            for hierarchy in self.hierarchies.every:
                if pid not in current.get(hierarchy.mount_point, ()):
                    writes += groups.enter(self.files, hierarchy, path, pid)
        return writes

    # Values

    def values(self, path: str) -> Values:
        """Read the values of a group that are ours.

        Raises:
            GroupGoneError: the group is missing in the hierarchy of cpu or memory.
        """
        cpu = self.hierarchies.required("cpu")
        name = "cpu.shares" if cpu.version is Version.V1 else "cpu.weight"
        return Values(cpu=_number(self._read(cpu, path, name)), memory_bytes=self._memory_limit(path))

    def container_cpu(self, vcores: int, *, opportunistic: bool) -> int:
        """Give the shares or weight that a container of this tree should have."""
        if self.hierarchies.required("cpu").version is Version.V1:
            return weights.container_shares(vcores, opportunistic=opportunistic)
        return weights.container_weight(vcores, opportunistic=opportunistic)

    def parent_cpu(self, cpu_milli: int) -> int:
        """Give the shares or weight that YARN's directory of this tree should have."""
        if self.hierarchies.required("cpu").version is Version.V1:
            return weights.parent_shares(cpu_milli)
        return weights.parent_weight(cpu_milli)

    def set_cpu(self, path: str, value: int) -> None:
        """Write shares or weight, whichever this tree has; see `container_cpu` and `parent_cpu`."""
        cpu = self.hierarchies.required("cpu")
        name = "cpu.shares" if cpu.version is Version.V1 else "cpu.weight"
        self.files.write(f"{cpu.at(path)}/{name}", str(value))

    def set_memory_limit(self, path: str, memory_bytes: int | None) -> None:
        """Write the memory limit; None lifts it.

        Raises:
            GroupBusyError: v1, the group uses more and nothing can be reclaimed; try again later.
        """
        memory = self.hierarchies.required("memory")
        if memory.version is Version.V1:
            text = "-1" if memory_bytes is None else str(weights.limit_bytes(memory_bytes))
            self.files.write(f"{memory.at(path)}/memory.limit_in_bytes", text)
            return
        text = "max" if memory_bytes is None else str(weights.limit_bytes(memory_bytes))
        self.files.write(f"{memory.at(path)}/memory.max", text)

    def kill_together(self, path: str) -> None:
        """Let an out-of-memory kill end the whole group instead of one process; where the kernel cannot, do nothing.

        Version 2 only: half a task is of no use and holds its memory. Stock version 1 kernels do not have it.
        """
        memory = self.hierarchies.required("memory")
        name = f"{memory.at(path)}/memory.oom.group"
        if memory.version is Version.V2 and self.files.exists(name):
            self.files.write(name, "1")

    def give_to(self, path: str, *, uid: int, gid: int) -> None:
        """Let another user make groups below one; its values stay with root."""
        for hierarchy in self.hierarchies.every:
            self.files.change_owner(hierarchy.at(path), uid=uid, gid=gid)
            if hierarchy.version is Version.V2:
                for name in (PROCS, "cgroup.subtree_control"):
                    self.files.change_owner(f"{hierarchy.at(path)}/{name}", uid=uid, gid=gid)

    # Steps

    def _make(self, hierarchy: Hierarchy, path: str) -> bool:
        if hierarchy.controllers == {FREEZER}:
            # kubelet does not keep its directories in every hierarchy that the kernel has; freezing needs one of ours.
            return groups.make_whole(self.files, hierarchy, path)
        made = self.files.make_directory(hierarchy.at(path))
        if hierarchy.version is Version.V1 and "cpuset" in hierarchy.controllers:
            self._seed_cpuset(hierarchy, path)
        return made

    def _seed_cpuset(self, hierarchy: Hierarchy, path: str) -> None:
        """Copy cpus and memory nodes of the parent into a new version 1 group, once.

        Without them no process can enter (ENOSPC), and koordlet would read a limit of no cpu at all. Values that are
        there already belong to koordlet. The parent may become narrower between reading and writing: try again.
        """
        parent = path.rpartition("/")[0]
        for name in ("cpuset.mems", "cpuset.cpus"):
            for attempt in range(_SEED_TRIES):
                if self._read(hierarchy, path, name).strip():
                    break
                inherited = self._read(hierarchy, parent, name).strip()
                try:
                    self.files.write(f"{hierarchy.at(path)}/{name}", inherited)
                    break
                except (PermissionDeniedError, ValueRefusedError):
                    if attempt == _SEED_TRIES - 1:
                        raise

    def _delegate(self, hierarchy: Hierarchy, path: str) -> bool:
        """Enable controllers for the groups below a version 2 group, and check that ours are there at all."""
        directory = hierarchy.at(path)
        available = set(self._read(hierarchy, path, "cgroup.controllers").split())
        lacking = sorted(hierarchy.controllers & {"cpu", "memory"} - available)
        if lacking:
            parent = hierarchy.at(path.rpartition("/")[0])
            raise NotDelegatedError(
                f"controller {lacking[0]} is not available in {directory}",
                path=f"{parent}/cgroup.subtree_control",
                fix=f"write +{lacking[0]} to it; kubelet does so itself where the controller is enabled at the top",
            )
        enabled = set(self._read(hierarchy, path, "cgroup.subtree_control").split())
        missing = [name for name in _WANTED_V2 if name in available - enabled]
        if not missing:
            return False
        try:
            self.files.write(f"{directory}/cgroup.subtree_control", " ".join(f"+{name}" for name in missing))
        except GroupBusyError as error:
            raise InternalProcessError(
                "processes sit in the directory of all containers, so the kernel cannot enable controllers below it",
                path=f"{directory}/{PROCS}",
                fix="move them into a group below; a NodeManager must not run in this directory itself",
            ) from error
        return True

    def _read(self, hierarchy: Hierarchy, path: str, name: str) -> str:
        return self.files.read(f"{hierarchy.at(path)}/{name}")

    def _memory_limit(self, path: str) -> int | None:
        memory = self.hierarchies.required("memory")
        if memory.version is Version.V1:
            limit = _number(self._read(memory, path, "memory.limit_in_bytes"))
            return None if limit is None or limit >= weights.UNLIMITED_V1 else limit
        return _number(self._read(memory, path, "memory.max"))


def _number(text: str) -> int | None:
    """Read a whole number; `max` and anything else is None."""
    stripped = text.strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() else None
