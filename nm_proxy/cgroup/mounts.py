# SPDX-License-Identifier: Apache-2.0
"""Read which cgroup hierarchies are mounted where, from /proc/self/mountinfo.

Line format (proc_pid_mountinfo(5)): id parent major:minor root mount-point options [optional fields] - type source
super-options. Blanks in paths are octal escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nm_proxy.cgroup.layout import Version

KNOWN_CONTROLLERS: Final = frozenset(
    {
        *("cpu", "cpuacct", "cpuset", "memory", "freezer", "blkio", "pids", "devices"),
        *("net_cls", "net_prio", "hugetlb", "perf_event", "rdma", "misc"),
    }
)
NAMED: Final = "name="
"""v1: begins the option, and the entry of /proc/PID/cgroup, of a hierarchy without controllers: `name=systemd`."""

_ESCAPE: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """Hold one mounted hierarchy.

    Attributes:
        version: V1 or V2.
        mount_point: absolute path in this mount namespace.
        root: which directory of the hierarchy is mounted there, as seen from this cgroup namespace: "/" is its root,
            and "/.." and "/../NAME" are outside of it.
        controllers: v1 only, as /proc/PID/cgroup names them; a named hierarchy has its name (`name=systemd`) for one.
        read_only: by the mount's or the file system's own option.
        nsdelegate: v2, cgroup namespaces bound where processes may be moved.
    """

    version: Version
    mount_point: str
    root: str
    controllers: frozenset[str]
    read_only: bool
    nsdelegate: bool = False


def parse_mounts(text: str) -> list[Mount]:
    """Read all cgroup mounts of a mountinfo text; lines of another shape are passed over."""
    found = (_mount(before, after) for before, after in split_lines(text))
    return [mount for mount in found if mount is not None]


def mounts_below(mounts: Iterable[Mount], root: str) -> list[Mount]:
    """Keep the mounts at `root` or directly below it; of several at one point the last one mounted is visible."""
    prefix = root.rstrip("/")
    visible: dict[str, Mount] = {}
    for mount in mounts:
        if mount.mount_point in (root, prefix) or mount.mount_point.rpartition("/")[0] == prefix:
            visible[mount.mount_point] = mount
    return list(visible.values())


def split_lines(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Give the fields of each mount, those before the dash and those behind it, still escaped.

    The mount point and the type are always there; the source may be empty, which leaves a field less behind the dash.
    Lines of another shape are passed over.
    """
    for line in text.splitlines():
        fields, _, rest = line.partition(" - ")
        before, after = fields.split(), rest.split()
        if len(before) >= 5 and after:
            yield before, after


def _mount(before: list[str], after: list[str]) -> Mount | None:
    if len(before) < 6 or len(after) < 3 or after[0] not in ("cgroup", "cgroup2"):
        return None
    options = set(after[2].split(","))
    version = Version.V2 if after[0] == "cgroup2" else Version.V1
    return Mount(
        version=version,
        mount_point=unescaped(before[4]),
        root=unescaped(before[3]),
        controllers=frozenset(filter(_is_controller, options)) if version is Version.V1 else frozenset(),
        read_only="ro" in before[5].split(",") or "ro" in options,
        nsdelegate="nsdelegate" in options,
    )


def _is_controller(option: str) -> bool:
    return option in KNOWN_CONTROLLERS or option.startswith(NAMED)


def unescaped(text: str) -> str:
    """Turn the octal escapes of mountinfo (blank, tab, line feed, backslash) back."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)
