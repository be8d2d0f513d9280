# SPDX-License-Identifier: Apache-2.0
"""Read and write single files of the cgroup tree; the only place here that makes system calls.

kernfs takes a value in one `write`, refuses it by the call's error number and knows neither truncation nor creation
of files. Paths are plain strings, because hundreds of them are put together in each pass.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

from nm_proxy.cgroup.errors import ValueRefusedError, translated

_READ_BYTES: Final = 65_536
_WHOLE_BYTES: Final = 2048
"""A read that gives less has given everything: the kernel fills a page with as many short lines as fit."""
DIRECTORY_MODE: Final = 0o755


class Files(Protocol):
    """Touch the tree; every method raises `CgroupError` and nothing else."""

    def read(self, path: str) -> str:
        """Read a whole file."""

    def write(self, path: str, text: str) -> None:
        """Write a value in one call."""

    def make_directory(self, path: str) -> bool:
        """Make a directory (its parent exists) and tell whether it is new."""

    def remove_directory(self, path: str) -> None:
        """Remove an empty group."""

    def directories(self, path: str) -> list[str]:
        """List the names of the directories below one."""

    def exists(self, path: str) -> bool:
        """Tell whether a file or directory exists."""

    def change_owner(self, path: str, *, uid: int, gid: int) -> None:
        """Give a file or directory to another user."""

    def age_seconds(self, path: str, now: float) -> float:
        """Tell how long ago a directory was made or last changed, by the wall clock `now`."""


class KernelFiles:
    """Satisfy `Files` with the kernel's own file systems."""

    def read(self, path: str) -> str:
        """Read a whole file; files of the tree are small, cgroup.procs of a huge group is read in pieces."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_all(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise translated(error, "cannot read", path) from error

    def write(self, path: str, text: str) -> None:
        """Write a value in one call; a short write is an error."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                written = os.write(descriptor, text.encode("ascii"))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise translated(error, f"cannot write {text!r}", path) from error
        if written != len(text):
            raise ValueRefusedError(f"the kernel took only a part of {text!r}", path=path)

    def make_directory(self, path: str) -> bool:
        """Make a group, readable by all and writable by its owner only, whatever the umask is."""
        try:
            os.mkdir(path, DIRECTORY_MODE)  # noqa: PTH102 - five for each container, and pathlib takes half of the time
        except FileExistsError:
            return False
        except OSError as error:
            raise translated(error, "cannot make the group", path) from error
        return True

    def remove_directory(self, path: str) -> None:
        """Remove an empty group; one that is gone already is an error too."""
        try:
            Path(path).rmdir()
        except OSError as error:
            raise translated(error, "cannot remove the group", path) from error

    def directories(self, path: str) -> list[str]:
        """List the groups directly below one."""
        try:
            with os.scandir(path) as entries:
                return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            raise translated(error, "cannot list", path) from error

    def exists(self, path: str) -> bool:
        """Tell whether a path exists; one that cannot be looked at does not."""
        try:
            os.stat(path)  # noqa: PTH116 - hot, and pathlib would hide errors other than "not found"
        except OSError:
            return False
        return True

    def change_owner(self, path: str, *, uid: int, gid: int) -> None:
        """Give a file or directory to another user."""
        try:
            os.chown(path, uid, gid)
        except OSError as error:
            raise translated(error, f"cannot give to user {uid}, group {gid}", path) from error

    def age_seconds(self, path: str, now: float) -> float:
        """Tell the age of a directory by its modification time; never negative."""
        try:
            return max(now - Path(path).stat().st_mtime, 0.0)
        except OSError as error:
            raise translated(error, "cannot look at", path) from error


def _read_all(descriptor: int) -> str:
    piece = os.read(descriptor, _READ_BYTES)
    if len(piece) < _WHOLE_BYTES:
        return piece.decode("ascii", "replace")
    pieces = [piece]
    while piece:
        piece = os.read(descriptor, _READ_BYTES)
        pieces.append(piece)
    return b"".join(pieces).decode("ascii", "replace")
