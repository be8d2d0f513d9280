# SPDX-License-Identifier: Apache-2.0
"""Write cpio archives of the form that the kernel unpacks at boot ("newc"; Documentation/driver-api/early-userspace).

Several archives one after another in one file are unpacked one after another. Nothing is compressed: unpacking costs
an emulated processor more than reading.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

_MAGIC: Final = b"070701"
_TRAILER: Final = "TRAILER!!!"
_ALIGNMENT: Final = 4


class Archive:
    """Write one archive; directories above an entry are made as needed. Close it with `finish`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._number = 0
        self._written: set[str] = set()

    def add_tree(self, source: Path, target: str, *, leave_out: Iterable[str] = ()) -> None:
        """Add a directory with everything in it, symbolic links as what they point to.

        Args:
            source: the directory.
            target: its absolute path in the archive.
            leave_out: names of files and directories to pass over, wherever they are.
        """
        unwanted = set(leave_out)
        for folder, directories, files in os.walk(source, followlinks=True):
            directories[:] = sorted(name for name in directories if name not in unwanted)
            below = Path(folder).relative_to(source).as_posix()
            for name in sorted(files):
                if name not in unwanted:
                    self.add_file(Path(folder, name), f"{target}/{below}/{name}".replace("/./", "/"))

    def add_file(self, source: Path, target: str) -> None:
        """Add one file under an absolute path, with its mode and time of change; the first of a name stays."""
        name = target.lstrip("/")
        if name in self._written:
            return
        self._add_parents(name)
        known = source.stat()
        self._entry(name, stat.S_IFREG | stat.S_IMODE(known.st_mode), int(known.st_mtime), source.read_bytes())

    def add_text(self, target: str, text: str, *, mode: int = 0o644) -> None:
        """Add a file with a given content."""
        name = target.lstrip("/")
        self._add_parents(name)
        self._entry(name, stat.S_IFREG | mode, 0, text.encode())

    def add_directory(self, target: str) -> None:
        """Add an empty directory."""
        self._add_parents(target.strip("/") + "/.")

    def finish(self) -> None:
        """Write the end of the archive."""
        self._entry(_TRAILER, 0, 0, b"")

    def _add_parents(self, name: str) -> None:
        parts = name.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            parent = "/".join(parts[:count])
            if parent not in self._written:
                self._entry(parent, stat.S_IFDIR | 0o755, 0, b"")

    def _entry(self, name: str, mode: int, changed_at: int, content: bytes) -> None:
        self._written.add(name)
        self._number += 1
        encoded = name.encode() + b"\0"
        # inode, mode, uid, gid, links, mtime, size, device (2), special device (2), length of the name, checksum
        fields = (self._number, mode, 0, 0, 1, changed_at, len(content), 0, 0, 0, 0, len(encoded), 0)
        header = _MAGIC + b"".join(b"%08X" % field for field in fields)
        self._stream.write(_padded(header + encoded) + _padded(content))


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % _ALIGNMENT)
