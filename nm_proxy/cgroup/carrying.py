# SPDX-License-Identifier: Apache-2.0
"""Give a version 1 group what bounds another one, so that a process that moves there may do no more than before.

Carried are device rules, the number of processes and huge pages. Not carried: blkio, net_cls and net_prio, whose values
are weights and marks that nobody sets for a container by default. Source: Documentation/admin-guide/cgroup-v1/
{devices,pids,hugetlb}.rst (Linux 6.x), security/device_cgroup.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nm_proxy.cgroup.errors import ValueRefusedError
from nm_proxy.cgroup.files import Files
from nm_proxy.cgroup.hierarchy import Hierarchy

DEVICES: Final = "devices"
EVERYTHING: Final = "a *:* rwm"
"""How `devices.list` says that there is no rule; a privileged container has it."""

CAP_SYS_ADMIN: Final = 21
"""Number of the capability that writing device rules takes (include/uapi/linux/capability.h)."""

_HUGE_PAGES: Final = ("64KB", "1MB", "2MB", "16MB", "32MB", "512MB", "1GB", "2GB", "16GB")
_LIMITS: Final = {"pids": ("pids.max",), "hugetlb": tuple(f"hugetlb.{size}.limit_in_bytes" for size in _HUGE_PAGES)}


def carry(files: Files, hierarchy: Hierarchy, source: str, target: str) -> None:
    """Let one group be bounded as another one is; writes only what differs.

    Args:
        files: how to touch the tree.
        hierarchy: of version 1; one without controllers that bound anything is left alone.
        source: a group, relative to the hierarchy's root; what its parents allow counts too.
        target: an existing group, relative to the hierarchy's root, without groups below it.

    Raises:
        CgroupError: a value cannot be read or written (device rules need CAP_SYS_ADMIN); nobody should move then.
    """
    for controller, names in _LIMITS.items():
        if controller in hierarchy.controllers:
            for name in names:
                _carry_limit(files, hierarchy, name, source, target)
    if DEVICES in hierarchy.controllers:
        _carry_rules(files, hierarchy.at(source), hierarchy.at(target))


def has_rules(files: Files, hierarchy: Hierarchy, group: str) -> bool:
    """Tell whether a group has device rules of its own, which only an administrator may give to another one.

    Raises:
        CgroupError: they cannot be read.
    """
    return DEVICES in hierarchy.controllers and EVERYTHING not in _rules(files, hierarchy.at(group))


def _carry_limit(files: Files, hierarchy: Hierarchy, name: str, source: str, target: str) -> None:
    path = f"{hierarchy.at(target)}/{name}"
    if not files.exists(path):
        return
    limits = [int(text) for text in _up(files, hierarchy, name, source) if text.isdigit()]
    wanted = str(min(limits)) if limits else "max"
    if files.read(path).strip() != wanted:
        files.write(path, wanted)


def _up(files: Files, hierarchy: Hierarchy, name: str, group: str) -> Iterator[str]:
    """Read a file of a group and of all above it; the root has no limits."""
    while group:
        path = f"{hierarchy.at(group)}/{name}"
        if files.exists(path):
            yield files.read(path).strip()
        group = group.rpartition("/")[0]


def _carry_rules(files: Files, source: str, target: str) -> None:
    """Copy the allow list: rule by rule where the target has one, so that nobody inside loses a device meanwhile."""
    wanted, present = _rules(files, source), _rules(files, target)
    if wanted == present:
        return
    if EVERYTHING in wanted:
        files.write(f"{target}/devices.allow", "a")
    else:
        if EVERYTHING in present:
            files.write(f"{target}/devices.deny", "a")
            present = set()
        # A rule that is denied takes its device out of every other one, so what shall be comes last.
        for rule in sorted(present - wanted):
            files.write(f"{target}/devices.deny", rule)
        for rule in sorted(wanted - _rules(files, target)):
            files.write(f"{target}/devices.allow", rule)
    left = _rules(files, target)
    if left != wanted:
        raise ValueRefusedError(
            f"the kernel made other device rules of the container's ({len(left ^ wanted)} differ)",
            path=f"{target}/devices.list",
        )


def _rules(files: Files, group: str) -> set[str]:
    return set(filter(None, files.read(f"{group}/devices.list").splitlines()))
