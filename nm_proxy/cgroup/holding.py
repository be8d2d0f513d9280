# SPDX-License-Identifier: Apache-2.0
"""Hold YARN's directory for one agent at a time.

Two agents in one directory end each other's tasks: what the other one's NodeManager runs is in no list of one's own. So
an agent holds a lock (flock(2)) on the directory itself, which every container that mounts the host's tree sees, and
which the kernel takes back when the agent dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final, Self

from nm_proxy.cgroup.errors import DirectoryTakenError

FIX: Final = (
    "end the other NodeManager of this node, or give each its own directory with cgroup.hierarchy (below kubelet's "
    "best-effort directory, for example hadoop-yarn-2)"
)


class Hold:
    """Hold one directory, inside `with`; one that cannot be opened holds nothing, and nobody can work in it either."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Take it.

        Raises:
            DirectoryTakenError: another agent works there.
        """
        try:
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return self
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise DirectoryTakenError("another nm-proxy works in it", path=self.directory, fix=FIX) from error
        except OSError:  # a file system without locks
            os.close(descriptor)
            return self
        self._descriptor = descriptor
        return self

    def __exit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_taken_by_another(directory: str, *, proc: str = "/proc") -> bool:
    """Tell whether an agent of another container holds a directory; that of this one may.

    The lock is taken for a moment, so an agent that starts just then has to try again.
    """
    try:
        with Hold(directory):
            return False
    except DirectoryTakenError:
        return not any(_is_in_this_container(pid, proc) for pid in _holders(directory, proc))


def _holders(directory: str, proc: str) -> list[int]:
    """List who holds the lock, as far as it is in this PID namespace.

    Shape of a line: `3: FLOCK  ADVISORY  WRITE 2611 00:1c:148 0 EOF`, with device and inode in the sixth word.
    """
    try:
        found = Path(directory).stat()
        lines = Path(proc, "locks").read_text("ascii", "replace").splitlines()
    except OSError:
        return []
    wanted = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    words = [line.split() for line in lines]
    locks = [one for one in words if len(one) > 5 and one[1] == "FLOCK" and one[5] == wanted]
    return [int(one[4]) for one in locks if one[4].isdigit()]


def _is_in_this_container(pid: int, proc: str) -> bool:
    """Tell whether a process sees the same mounts."""
    try:
        return Path(proc, str(pid), "ns", "mnt").stat().st_ino == Path(proc, "self", "ns", "mnt").stat().st_ino
    except OSError:
        return False
