# SPDX-License-Identifier: Apache-2.0
"""Read delegation tokens in the two forms in which Hadoop hands them out.

- Text: `Token.encodeToUrlString`, base64 with `-` and `_` and without `=`.
- File: HADOOP_TOKEN_FILE_LOCATION, `Credentials.writeTokenStorageToStream`: `HDTS`, version 0, number of tokens, each
  with its alias.

Both hold a token as: identifier and password with a Hadoop variable-length integer in front, then kind and service as
text with such a length. Source: Token, Credentials and WritableUtils of Hadoop 3.5.0.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Final

from msgspec import Struct

from yarn_copilot.errors import ConfigError

RM_TOKEN_KIND: Final = "RM_DELEGATION_TOKEN"  # noqa: S105  (the name of a kind)
STORAGE_MAGIC: Final = b"HDTS"
STORAGE_BYTES_MAX: Final = 1_048_576
_WRITABLE_VERSION: Final = 0


class DelegationToken(Struct, frozen=True):
    """Hold one token; its password never appears in texts.

    Attributes:
        identifier: bytes that name owner, renewer and number.
        password: the secret that belongs to it.
        kind: for example RM_DELEGATION_TOKEN.
        service: the server's address, or several with commas.
    """

    identifier: bytes
    password: bytes
    kind: str = ""
    service: str = ""

    def __repr__(self) -> str:
        return f"DelegationToken(kind={self.kind!r}, service={self.service!r})"


def parse_token(text: str) -> DelegationToken:
    """Read the text form.

    Raises:
        ConfigError: it is malformed; the text is not repeated, since it is a secret.
    """
    stripped = text.strip()
    try:
        data = base64.b64decode(stripped + "=" * (-len(stripped) % 4), altchars=b"-_", validate=True)
        reader = _Reader(data)
        token = reader.token()
        reader.end()
    except (ValueError, binascii.Error) as error:
        raise ConfigError(f"a delegation token of {len(stripped)} characters is malformed") from error
    return token


def read_token_file(path: Path) -> tuple[DelegationToken, ...]:
    """Read a token storage file.

    Raises:
        ConfigError: it cannot be read, is too long, malformed, or of the protobuf form of `hdfs fetchdt`.
    """
    try:
        with path.open("rb") as file:
            data = file.read(STORAGE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    if len(data) > STORAGE_BYTES_MAX:
        raise ConfigError(f"{path}: is longer than {STORAGE_BYTES_MAX} bytes, so it is no token file")
    if not data.startswith(STORAGE_MAGIC):
        raise ConfigError(f"{path}: is no Hadoop token file")
    if data[len(STORAGE_MAGIC) : len(STORAGE_MAGIC) + 1] != bytes((_WRITABLE_VERSION,)):
        raise ConfigError(f"{path}: has another version than 0; write it with -format java")
    try:
        return _Reader(data[len(STORAGE_MAGIC) + 1 :]).tokens()
    except ValueError as error:
        raise ConfigError(f"{path}: is cut or malformed") from error


class _Reader:
    """Read Hadoop's Writables; ValueError where the bytes end early or are wrong."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def tokens(self) -> tuple[DelegationToken, ...]:
        found = []
        for _ in range(self._length()):
            self._text()  # the alias
            found.append(self.token())
        return tuple(found)

    def token(self) -> DelegationToken:
        return DelegationToken(self._bytes(), self._bytes(), self._text(), self._text())

    def end(self) -> None:
        if self._position != len(self._data):
            raise ValueError("bytes are left over")

    def _bytes(self) -> bytes:
        return self._take(self._length())

    def _text(self) -> str:
        return self._bytes().decode()

    def _length(self) -> int:
        """Read a variable-length integer: one byte from -112 to 127, or a byte that tells sign and length."""
        first = int.from_bytes(self._take(1), "big", signed=True)
        if first >= -112:
            length = first
        elif first < -120:
            raise ValueError("negative length")
        else:
            length = int.from_bytes(self._take(-112 - first), "big")
        if length < 0:
            raise ValueError("negative length")
        return length

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise ValueError("the data end early")
        taken = self._data[self._position : end]
        self._position = end
        return taken
