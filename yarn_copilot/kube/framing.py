# SPDX-License-Identifier: Apache-2.0
"""Cut a watch's byte stream into lines; no I/O here.

A watch answers one JSON document per line, each ended by LF (API conventions, "Efficient detection of changes").
A line may be larger than any buffer of the HTTP library, so the pieces are kept here and joined once.
"""

from __future__ import annotations

from typing import Final

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
"""Ten times etcd's request limit of 1.5 MiB: no stored object is larger, so more is not an API server."""


class LineTooLongError(ValueError):
    """Say that a line passes the bound; the stream is useless from here."""


class LineSplitter:
    """Keep the incomplete tail of a stream and give out complete lines.

    `feed` costs no copy for lines inside one chunk but the split itself, and one join for a line that spans chunks.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_line_bytes = max_line_bytes
        self._pieces: list[bytes] = []
        self._pending_bytes = 0

    @property
    def pending_bytes(self) -> int:
        """Give the size of the incomplete line held back."""
        return self._pending_bytes

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take bytes as they arrived and return the lines they complete, without LF, empty ones left out.

        Raises:
            LineTooLongError: a line, complete or not, is longer than the bound.
        """
        *lines, tail = chunk.split(b"\n")
        if lines and self._pieces:
            self._pieces.append(lines[0])
            lines[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._pending_bytes = 0
        if tail:
            self._pieces.append(tail)
            self._pending_bytes += len(tail)
        longest = max(map(len, lines), default=0)
        if longest > self._max_line_bytes or self._pending_bytes > self._max_line_bytes:
            raise LineTooLongError(f"a line has more than {self._max_line_bytes} bytes")
        return [line for line in lines if line]
