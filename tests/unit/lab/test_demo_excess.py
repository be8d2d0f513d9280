# SPDX-License-Identifier: Apache-2.0
"""Test who is blamed for more in use than origin in the demo."""

from __future__ import annotations

from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.demo.excess import ExcessMeter, Holdings


def _units(count: int) -> BatchResources:
    return BatchResources(cpu_milli=count * 1000, memory_bytes=count << 30)


def _has(held: int, used: int, *, offered: int = 0, capacity: int = 0) -> Holdings:
    return Holdings(held=_units(held), used=_units(used), offered=_units(offered), capacity=_units(capacity))


def test_a_growth_above_origin_is_sold_twice_until_it_fits_again() -> None:
    meter = ExcessMeter()

    assert not meter.is_sold_twice("n", _has(2, 1), _units(4), 0.0)
    assert meter.is_sold_twice("n", _has(2, 3), _units(4), 0.1)
    assert meter.is_sold_twice("n", _has(2, 3), _units(4), 60.0)
    assert not meter.is_sold_twice("n", _has(2, 2), _units(4), 60.1)
    assert not meter.is_sold_twice("other", _has(2, 2), _units(4), 60.1)


def test_what_a_fall_left_is_not_sold_twice_however_long_it_stays() -> None:
    meter = ExcessMeter()
    meter.is_sold_twice("n", _has(2, 2), _units(4), 0.0)

    assert not meter.is_sold_twice("n", _has(2, 2), _units(3), 0.1)
    assert not meter.is_sold_twice("n", _has(2, 2), _units(1), 600.0)


def test_permissions_older_than_a_fall_excuse_a_growth_over_two_falls() -> None:
    meter = ExcessMeter()
    meter.is_sold_twice("n", _has(1, 1, offered=3, capacity=1), _units(4), 0.0)

    # A bind that kube-scheduler decided by what was offered at 4 lands after the second fall.
    meter.is_sold_twice("n", _has(1, 1, offered=3, capacity=1), _units(3), 0.1)
    assert not meter.is_sold_twice("n", _has(3, 1, offered=2, capacity=1), _units(2), 0.6)


def test_a_growth_after_everything_fitted_into_the_lower_origin_is_sold_twice() -> None:
    meter = ExcessMeter()
    meter.is_sold_twice("n", _has(1, 1, offered=3, capacity=1), _units(4), 0.0)
    meter.is_sold_twice("n", _has(1, 1, offered=1, capacity=1), _units(2), 0.1)
    meter.is_sold_twice("n", _has(1, 1, offered=1, capacity=1), _units(2), 1.5)

    assert meter.is_sold_twice("n", _has(2, 1, offered=1, capacity=1), _units(2), 1.6)


def test_a_long_past_fall_excuses_nothing_that_was_not_there() -> None:
    meter = ExcessMeter()
    meter.is_sold_twice("n", _has(1, 1, offered=3, capacity=1), _units(4), 0.0)
    meter.is_sold_twice("n", _has(1, 1, offered=3, capacity=1), _units(2), 0.1)

    assert meter.is_sold_twice("n", _has(3, 1, offered=3, capacity=1), _units(2), 11.0)


def test_the_first_reading_of_a_node_excuses_nothing() -> None:
    assert ExcessMeter().is_sold_twice("n", _has(1, 2), _units(2), 0.0)
    assert not ExcessMeter().is_sold_twice("n", Holdings(held=ZERO_BATCH, used=ZERO_BATCH), _units(2), 0.0)
