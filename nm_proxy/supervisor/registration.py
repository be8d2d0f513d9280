# SPDX-License-Identifier: Apache-2.0
"""Tell whether a NodeManager talks to a ResourceManager, without asking either.

A NodeManager does not say on any page whether it is registered, and thousands of nodes must not ask the
ResourceManager. But it keeps one connection to the tracker's port open, over which it sends its heartbeats; the kernel
lists it. Shape: /proc/PID/net/tcp{,6} (proc_pid_net(5)), /proc/PID/fd/N -> socket:[INODE].
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

_ESTABLISHED: Final = "01"
_ALL_TABLES: Final = ("tcp", "tcp6")


def connected_inodes(table: str, ports: Collection[int]) -> set[str]:
    """Read the inodes of established connections to remote ports from a text of /proc/PID/net/tcp; pure."""
    found = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _ESTABLISHED and int(fields[2].rpartition(":")[2], 16) in ports:
            found.add(fields[9])
    return found


def is_connected(pid: int, ports: Collection[int], *, proc: Path = Path("/proc")) -> bool:
    """Tell whether a process has a connection to one of the ports; False where it is gone or may not be looked at."""
    wanted: set[str] = set()
    for name in _ALL_TABLES:
        try:
            wanted |= connected_inodes((proc / str(pid) / "net" / name).read_text(), ports)
        except (OSError, ValueError):
            continue
    return bool(wanted) and any(inode in wanted for inode in _socket_inodes(proc / str(pid) / "fd"))


def _socket_inodes(directory: Path) -> Iterator[str]:
    try:
        names = os.listdir(directory)  # noqa: PTH208 - hundreds of entries at each probe
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"{directory}/{name}")  # noqa: PTH115 - the same
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target[len("socket:[") : -1]
