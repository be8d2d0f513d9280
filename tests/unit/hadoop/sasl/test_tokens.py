# SPDX-License-Identifier: Apache-2.0
"""Read delegation tokens in Hadoop's two forms."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.sasl.tokens import DelegationToken, parse_token, read_token_file

TOKEN = DelegationToken(b"identifier", b"password", "RM_DELEGATION_TOKEN", "rm:8032")


def written(token: DelegationToken) -> bytes:
    """Write a token as Java does; short lengths are one byte."""
    parts = (token.identifier, token.password, token.kind.encode(), token.service.encode())
    return b"".join(length(len(part)) + part for part in parts)


def length(number: int) -> bytes:
    """Write WritableUtils.writeVInt for 0 to 65535."""
    if number <= 127:
        return bytes((number,))
    size = 1 if number < 256 else 2
    return (-112 - size).to_bytes(1, "big", signed=True) + number.to_bytes(size, "big")


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 3000])
def test_text_form_is_read_for_every_length(size: int) -> None:
    token = DelegationToken(b"i" * size, b"p", "k", "s")
    text = base64.urlsafe_b64encode(written(token)).rstrip(b"=").decode()
    assert parse_token(f"{text}\n") == token


@pytest.mark.parametrize("text", ["", "A", "!!!!", "AAAA" * 100, "fwAA", "hwAA"])
def test_malformed_text_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="malformed") as caught:
        parse_token(text)
    assert not text or text not in str(caught.value)


def test_file_with_two_tokens_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    entry = length(5) + b"alias" + written(TOKEN)
    path.write_bytes(b"HDTS\x00\x02" + entry + entry + b"\x00")
    assert read_token_file(path) == (TOKEN, TOKEN)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "no Hadoop token file"),
        (b"XXXX\x00\x00", "no Hadoop token file"),
        (b"HDTS\x01", "-format java"),
        (b"HDTS\x00\x01\x05alias", "cut or malformed"),
        (b"HDTS\x00\x7f", "cut or malformed"),
        (b"HDTS\x00" + b"\xff" * 20, "cut or malformed"),
        (b"x" * 1_048_577, "longer"),
    ],
)
def test_bad_file_is_told(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=text):
        read_token_file(path)


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        read_token_file(tmp_path / "missing")


def test_secret_is_not_shown() -> None:
    assert "password" not in repr(TOKEN)
