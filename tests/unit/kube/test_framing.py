# SPDX-License-Identifier: Apache-2.0
"""Test cutting a byte stream into lines."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarn_copilot.kube.framing import LineSplitter, LineTooLongError


@given(
    lines=st.lists(st.binary(min_size=1, max_size=30).filter(lambda line: b"\n" not in line), max_size=20),
    cuts=st.lists(st.integers(min_value=0, max_value=700), max_size=30),
)
def test_lines_come_out_whole_however_the_stream_is_cut(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    splitter = LineSplitter()
    found: list[bytes] = []
    for start, end in pairwise(edges):
        found += splitter.feed(stream[start:end])
    assert found == lines
    assert splitter.pending_bytes == 0


def test_an_incomplete_line_is_held_back() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b'{"a"') == []
    assert splitter.pending_bytes == 4
    assert splitter.feed(b":1}\n{") == [b'{"a":1}']
    assert splitter.pending_bytes == 1


def test_empty_lines_are_left_out() -> None:
    assert LineSplitter().feed(b"\n\na\n\n") == [b"a"]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([b"x" * 11 + b"\n"], id="complete in one chunk"),
        pytest.param([b"x" * 6, b"x" * 5], id="incomplete over two chunks"),
        pytest.param([b"x" * 6, b"x" * 5 + b"\n"], id="complete over two chunks"),
    ],
)
def test_a_line_above_the_bound_is_refused(chunks: list[bytes]) -> None:
    splitter = LineSplitter(max_line_bytes=10)
    *first, last = chunks
    for chunk in first:
        splitter.feed(chunk)
    with pytest.raises(LineTooLongError):
        splitter.feed(last)


def test_a_line_of_exactly_the_bound_passes() -> None:
    splitter = LineSplitter(max_line_bytes=10)
    assert splitter.feed(b"x" * 5) == []
    assert splitter.feed(b"x" * 5 + b"\n") == [b"x" * 10]
