# SPDX-License-Identifier: Apache-2.0
"""Do one thing to one group in one hierarchy; `tree` does it in all, `parenting.detaching` in those beside them."""

from __future__ import annotations

from typing import Final

from nm_proxy.cgroup.errors import GroupGoneError, ProcessGoneError
from nm_proxy.cgroup.files import Files
from nm_proxy.cgroup.hierarchy import Hierarchy

PROCS: Final = "cgroup.procs"


def members(files: Files, hierarchy: Hierarchy, path: str) -> frozenset[int]:
    """List the processes of a group, 0 for those of other PID namespaces; one that is not there has none.

    Raises:
        CgroupError: it cannot be looked at.
    """
    try:
        return frozenset(map(int, files.read(f"{hierarchy.at(path)}/{PROCS}").split()))
    except GroupGoneError:
        return frozenset()


def enter(files: Files, hierarchy: Hierarchy, path: str, pid: int) -> bool:
    """Put a process into a group, and tell whether it was still there to be moved.

    Raises:
        CgroupError: the group is gone, or may not be written.
    """
    try:
        files.write(f"{hierarchy.at(path)}/{PROCS}", str(pid))
    except ProcessGoneError:
        return False
    return True


def make_whole(files: Files, hierarchy: Hierarchy, path: str) -> bool:
    """Make a group and what is missing above it, where kubelet keeps no directories; tell whether the group is new.

    Raises:
        CgroupError: it cannot be made.
    """
    try:
        return files.make_directory(hierarchy.at(path))
    except GroupGoneError:
        above = path.rpartition("/")[0]
        if not above:
            raise
        make_whole(files, hierarchy, above)
        return files.make_directory(hierarchy.at(path))
