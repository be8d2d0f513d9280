# SPDX-License-Identifier: Apache-2.0
"""Tell which mount a path is on, from the text of /proc/self/mountinfo (proc_pid_mountinfo(5)); pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nm_proxy.cgroup.mounts import split_lines, unescaped


@dataclass(frozen=True, slots=True)
class Volume:
    """Hold a mount: where it is and its file system's type."""

    mount_point: str
    file_system: str


def volume_of(path: Path, mountinfo: str) -> Volume:
    """Find the mount that a path without symbolic links is on; of several at one point the last is visible."""
    best = Volume("/", "unknown")
    for before, after in split_lines(mountinfo):
        point = unescaped(before[4])
        if path.is_relative_to(point) and len(point) >= len(best.mount_point):
            best = Volume(point, after[0])
    return best


def is_same_root(mountinfo: str, other: str) -> bool:
    """Tell whether two mount namespaces have the same directory of the same file system at `/`.

    A service of the machine that systemd gives a namespace of its own has the machine's; a container has its own layer,
    which on btrfs is another directory of the same device.
    """
    root = _root_of(mountinfo)
    return root is not None and root == _root_of(other)


def _root_of(mountinfo: str) -> tuple[str, str] | None:
    """Give device and directory of what is visible at `/`; None where nothing is mounted there."""
    found = None
    for before, _ in split_lines(mountinfo):
        if before[4] == "/":
            found = before[2], before[3]
    return found
