# SPDX-License-Identifier: Apache-2.0
"""Test the waits between tries."""

from __future__ import annotations

import pytest

from yarn_copilot.kube.backoff import Backoff


@pytest.mark.parametrize(
    ("random", "share"), [pytest.param(0.0, 0.5, id="least"), pytest.param(0.999, 0.9995, id="most")]
)
def test_waits_double_up_to_the_bound(random: float, share: float) -> None:
    backoff = Backoff(0.5, 4.0, lambda: random)
    assert [backoff.next_seconds() for _ in range(6)] == pytest.approx(
        [0.5 * share, 1 * share, 2 * share, 4 * share, 4 * share, 4 * share]
    )


def test_a_success_starts_again_from_the_first_wait() -> None:
    backoff = Backoff(0.5, 4.0, lambda: 0.0)
    backoff.next_seconds()
    backoff.next_seconds()
    backoff.reset()
    assert backoff.next_seconds() == 0.25


def test_the_server_may_ask_for_more_but_not_for_ever() -> None:
    backoff = Backoff(0.5, 4.0, lambda: 0.0)
    assert backoff.next_seconds(at_least=9.0) == 9.0
    assert backoff.next_seconds(at_least=1e9) == 60.0


def test_a_thousand_failures_do_not_overflow() -> None:
    backoff = Backoff(0.5, 4.0, lambda: 0.0)
    assert [backoff.next_seconds() for _ in range(1000)][-1] == 2.0
