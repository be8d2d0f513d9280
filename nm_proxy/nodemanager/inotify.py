# SPDX-License-Identifier: Apache-2.0
"""Hear from the kernel when names appear in directories (inotify(7)), without polling.

Three functions of libc through ctypes and one file descriptor in the event loop. The packages for this either
wait 50 ms and more to fold events (watchfiles), run threads of their own and walk trees (watchdog) or are no longer
kept; a container's limits should be in force before that. Events only say "look now": whoever listens reads the
directories again from time to time, since a queue that overflows or a limit of watches loses events.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass
from typing import Final

from nm_proxy.nodemanager.errors import WatchError

_IN_CLOSE_WRITE: Final = 0x8
_IN_MOVED_TO: Final = 0x80
_IN_CREATE: Final = 0x100
_IN_Q_OVERFLOW: Final = 0x4000
_IN_IGNORED: Final = 0x8000
_IN_ONLYDIR: Final = 0x0100_0000
_IN_DONT_FOLLOW: Final = 0x0200_0000
_MASK: Final = _IN_CREATE | _IN_MOVED_TO | _IN_CLOSE_WRITE | _IN_ONLYDIR | _IN_DONT_FOLLOW
_HEADER: Final = struct.Struct("iIII")
"""struct inotify_event without the name: watch descriptor, mask, cookie, length of the name with its padding."""

_BUFFER_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Appeared:
    """Say that a name appeared, or was written and closed, in a watched directory.

    `path` is None after an overflow: something was lost, look everywhere.
    """

    path: str | None


class DirectoryWatch:
    """Watch directories; one reader. The descriptor becomes readable when there are events."""

    def __init__(self) -> None:
        """Open the queue.

        Raises:
            WatchError: the kernel refuses (fs.inotify.max_user_instances).
        """
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise self._error("cannot open a queue of directory events", "fs.inotify.max_user_instances")
        self._paths: dict[int, str] = {}
        self._watched: dict[str, int] = {}

    @property
    def descriptor(self) -> int:
        """Give the file descriptor for the event loop."""
        return self._descriptor

    def is_watched(self, path: str) -> bool:
        """Tell whether a directory is watched now."""
        return path in self._watched

    def add(self, path: str) -> bool:
        """Watch a directory.

        Returns:
            Whether it is watched now; False when it does not exist (any more).

        Raises:
            WatchError: the kernel refuses (fs.inotify.max_user_watches).
        """
        if path in self._watched:
            return True
        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(path), ctypes.c_uint32(_MASK))
        if watch < 0:
            if ctypes.get_errno() in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                return False
            raise self._error(f"cannot watch {path}", "fs.inotify.max_user_watches")
        stale = self._paths.get(watch)
        if stale is not None:
            self._watched.pop(stale, None)
        self._paths[watch] = path
        self._watched[path] = watch
        return True

    def read(self) -> list[Appeared]:
        """Take the events that are there; never waits."""
        found: list[Appeared] = []
        while True:
            try:
                content = os.read(self._descriptor, _BUFFER_BYTES)
            except BlockingIOError:
                return found
            found.extend(self._parsed(content))

    def close(self) -> None:
        """Close the queue; all watches end."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _parsed(self, content: bytes) -> list[Appeared]:
        found = []
        offset = 0
        while offset + _HEADER.size <= len(content):
            watch, mask, _, length = _HEADER.unpack_from(content, offset)
            name = content[offset + _HEADER.size : offset + _HEADER.size + length].rstrip(b"\0")
            offset += _HEADER.size + length
            if mask & _IN_Q_OVERFLOW:
                found.append(Appeared(None))
            elif mask & _IN_IGNORED:
                self._watched.pop(self._paths.pop(watch, ""), None)
            elif name and watch in self._paths:
                found.append(Appeared(f"{self._paths[watch]}/{os.fsdecode(name)}"))
        return found

    def _error(self, what: str, limit: str) -> WatchError:
        number = ctypes.get_errno()
        return WatchError(f"{what}: {os.strerror(number)}; raise the kernel's {limit}, or rely on the periodic look")
