# SPDX-License-Identifier: Apache-2.0
"""Encrypt and decrypt with RC4, the one cipher of DIGEST-MD5 that every Java runtime still offers.

Plain Python, about 2 MB/s: enough for answers of a few hundred kilobytes. Not to be used for anything else.
"""

from __future__ import annotations


class RC4:
    """Be one key stream; encrypting and decrypting are the same step."""

    def __init__(self, key: bytes) -> None:
        """Schedule a key of 1 to 256 bytes."""
        state = list(range(256))
        j = 0
        for i in range(256):
            j = (j + state[i] + key[i % len(key)]) & 0xFF
            state[i], state[j] = state[j], state[i]
        self._state = state
        self._i = self._j = 0

    def apply(self, data: bytes) -> bytes:
        """Encrypt or decrypt the next bytes of the stream."""
        state, i, j = self._state, self._i, self._j
        stream = bytearray(len(data))
        for position in range(len(data)):
            i = (i + 1) & 0xFF
            j = (j + state[i]) & 0xFF
            state[i], state[j] = state[j], state[i]
            stream[position] = state[(state[i] + state[j]) & 0xFF]
        self._i, self._j = i, j
        return (int.from_bytes(data, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(data), "big")
