# SPDX-License-Identifier: Apache-2.0
"""Test label selectors."""

from __future__ import annotations

import pytest

from yarn_copilot.controller.state.selectors import LabelSelector


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a=b", {"a": "b", "x": "y"}, True),
        ("a=b", {"a": "c"}, False),
        ("a==b", {"a": "b"}, True),
        ("a", {"a": "anything"}, True),
        ("a", {}, False),
        ("a=", {"a": ""}, True),
        ("a=", {"a": "b"}, False),
        (" a = b , c ", {"a": "b", "c": "d"}, True),
        ("a=b,c=d", {"a": "b"}, False),
        ("a!=b", {"a": "c"}, True),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("c=d,a != b", {"a": "c", "c": "d"}, True),
    ],
)
def test_a_selector_matches_when_every_requirement_holds(text: str, labels: dict[str, str], expected: bool) -> None:
    assert LabelSelector.parse(text).matches(labels) is expected


@pytest.mark.parametrize("text", ["", "a=b,", "=b"])
def test_a_requirement_without_a_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="empty requirement"):
        LabelSelector.parse(text)
