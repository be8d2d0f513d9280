# SPDX-License-Identifier: Apache-2.0
"""Amounts are short words; unknown is a question mark, never zero."""

from __future__ import annotations

import pytest

from yarn_copilot.cli import amounts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "?"),
        (0.04, "0.0s"),
        (9.94, "9.9s"),
        (12.7, "12s"),
        (119, "119s"),
        (180, "3m"),
        (7300, "2h"),
        (200000, "2d"),
    ],
)
def test_ages(seconds: float | None, text: str) -> None:
    assert amounts.age(seconds) == text


def test_unknown_amounts_are_not_zero() -> None:
    assert amounts.batch(None) == amounts.batch({"cpu_milli": None, "memory_bytes": 1}) == "?"
    assert amounts.batch({"cpu_milli": 0, "memory_bytes": 0}) == "0.0/0.0Gi"
    assert amounts.yarn(None) == amounts.percent(None) == amounts.count(None) == "?"
    assert amounts.yarn({"memory_mib": 1, "vcores": 0}) == "0/1Mi"
