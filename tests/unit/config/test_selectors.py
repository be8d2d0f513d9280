# SPDX-License-Identifier: Apache-2.0
"""Selectors match labels as Kubernetes' equality form does."""

from __future__ import annotations

import pytest

from yarn_copilot.config.selectors import parse_selector, selector_matches


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("a=1", {"a": "1"}, True),
        ("a=1", {"a": "2"}, False),
        ("a=1", {}, False),
        ("a==1", {"a": "1"}, True),
        ("a!=1", {"a": "2"}, True),
        ("a!=1", {}, True),
        ("a!=1", {"a": "1"}, False),
        ("a=", {"a": ""}, True),
        ("a = 1 , b.c/d = 2", {"a": "1", "b.c/d": "2"}, True),
        ("a=1,b=2", {"a": "1"}, False),
    ],
)
def test_a_selector_matches_as_in_kubernetes(text: str, labels: dict[str, str], expected: bool) -> None:
    assert selector_matches(parse_selector(text), labels) is expected
