# SPDX-License-Identifier: Apache-2.0
"""Join mounted hierarchies into the set that this program works with: which controller lives where.

Version 1 mounts one hierarchy for each controller (or for some together), version 2 one for all. On a hybrid host
each controller is on exactly one of them; a version 2 hierarchy without cpu and memory is not used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nm_proxy.cgroup.errors import CgroupError, TreeNotFoundError
from nm_proxy.cgroup.files import Files
from nm_proxy.cgroup.layout import Version
from nm_proxy.cgroup.mounts import Mount, mounts_below

REQUIRED: Final = ("cpu", "memory")
"""Without these there is nothing to limit."""

ACCOUNTED: Final = ("cpuacct", "cpuset")
"""v1: koordlet reads cpuacct and writes cpuset of the same directories; part of `cpu` and optional in v2."""

FREEZER: Final = "freezer"
"""v1: needed to end a whole group without a race; v2 has it in every group."""

USED: Final = (*REQUIRED, *ACCOUNTED, FREEZER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Hold one mounted hierarchy that we use.

    Attributes:
        version: which interface its files have.
        mount_point: absolute, without a slash at its end.
        controllers: those of it that are used or usable here.
        read_only: the mount is read-only.
        is_bounded: v2, processes cannot be moved out of this program's cgroup namespace, if it has one of its own, and
            the mount reaches beyond it.
    """

    version: Version
    mount_point: str
    controllers: frozenset[str]
    read_only: bool
    is_bounded: bool = False

    def at(self, path: str) -> str:
        """Give the directory of a group, whose path is relative and may be empty."""
        return f"{self.mount_point}/{path}" if path else self.mount_point


@dataclass(frozen=True, slots=True)
class Hierarchies:
    """Hold the hierarchies in use; the first one is that of `cpu`.

    Invariant: each controller is in at most one of them, cpu and memory in exactly one.
    """

    every: tuple[Hierarchy, ...]

    def of(self, controller: str) -> Hierarchy | None:
        """Give the hierarchy of a controller."""
        return next((hierarchy for hierarchy in self.every if controller in hierarchy.controllers), None)

    def required(self, controller: str) -> Hierarchy:
        """Give the hierarchy of a controller.

        Raises:
            TreeNotFoundError: there is none.
        """
        found = self.of(controller)
        if found is None:
            raise TreeNotFoundError(f"controller {controller} is in no mounted hierarchy", path=self.every[0].at(""))
        return found

    @property
    def version(self) -> Version:
        """Give the version of the hierarchy of `memory`, which decides what a limit does."""
        return self.required("memory").version


def find_hierarchies(mounts: Iterable[Mount], root: str, files: Files) -> Hierarchies:
    """Find which controller is where, from what is mounted at or below a directory.

    Directories that are not mounts are ignored: a tree that a former boot or a wrong path left behind
    looks like a version 1 hierarchy and limits nothing.

    Args:
        mounts: all cgroup mounts of this mount namespace.
        root: where the host's tree is visible, for example /sys/fs/cgroup or /host-cgroup.
        files: to read `cgroup.controllers` of version 2.

    Raises:
        TreeNotFoundError: nothing is mounted there, or cpu or memory is in none of it.
    """
    here = mounts_below(mounts, root)
    if not here:
        raise TreeNotFoundError(
            "no cgroup hierarchy is mounted",
            path=root,
            fix="mount the host's /sys/fs/cgroup there (hostPath), or set cgroup.root to where it is",
        )
    left = set(USED)
    chosen: list[Hierarchy] = []
    # Version 2 first: a controller that is enabled there cannot be in a version 1 hierarchy at the same time.
    for mount in sorted(here, key=lambda mount: (mount.version is Version.V1, mount.mount_point)):
        controllers = _controllers(mount, files) & left
        if mount.version is Version.V2 and not controllers & set(REQUIRED):
            continue
        if controllers:
            left -= controllers
            chosen.append(_hierarchy(mount, controllers))
    for controller in REQUIRED:
        if controller in left:
            raise TreeNotFoundError(
                f"controller {controller} is in no hierarchy mounted here",
                path=root,
                fix=f"enable it in the kernel (no cgroup_disable={controller}) and mount the host's whole tree",
            )
    return Hierarchies(tuple(sorted(chosen, key=lambda one: "cpu" not in one.controllers)))


def find_others(mounts: Iterable[Mount], root: str, hierarchies: Hierarchies) -> tuple[Hierarchy, ...]:
    """Give the hierarchies mounted there that are not in use: devices, pids, systemd, version 2 without limits.

    Nothing of ours is limited in them, but container runtimes, systemd and kubelet look there for a container's
    processes.
    """
    used = {one.mount_point for one in hierarchies.every}
    here = (_hierarchy(mount, set(mount.controllers)) for mount in mounts_below(mounts, root))
    return tuple(sorted((one for one in here if one.mount_point not in used), key=lambda one: one.mount_point))


def unmounted_lookalikes(hierarchies: Hierarchies, root: str, files: Files) -> list[str]:
    """Find directories that look like version 1 hierarchies beside version 2 but are not mounted.

    Hadoop before 3.5.0 (YARN-11813) takes such leftovers for the real tree, and then nothing is limited.

    Returns:
        Their paths, sorted.
    """
    if hierarchies.version is Version.V1:
        return []
    mounted = {hierarchy.mount_point for hierarchy in hierarchies.every}
    found = [f"{root.rstrip('/')}/{name}" for name in files.directories(root) if set(name.split(",")) & set(USED)]
    return sorted(path for path in found if path not in mounted)


def _controllers(mount: Mount, files: Files) -> set[str]:
    if mount.version is Version.V1:
        return set(mount.controllers)
    try:
        return set(files.read(f"{mount.mount_point.rstrip('/')}/cgroup.controllers").split())
    except CgroupError:
        return set()


def _hierarchy(mount: Mount, controllers: set[str]) -> Hierarchy:
    return Hierarchy(
        version=mount.version,
        mount_point=mount.mount_point.rstrip("/"),
        controllers=frozenset(controllers),
        read_only=mount.read_only,
        is_bounded=mount.nsdelegate and (mount.root == "/.." or mount.root.startswith("/../")),
    )
