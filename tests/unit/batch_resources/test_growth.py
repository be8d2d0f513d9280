# SPDX-License-Identifier: Apache-2.0
"""Test the smallest origin of the growth window."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batch_resources.growth import Window, next_expiry, observe_origin, window_minimum
from batch_resources.resources import BatchResources
from tests.unit.batch_resources.builders import batch


def test_a_window_of_zero_follows_at_once() -> None:
    window = observe_origin((), batch(1000, 1), now=0.0, length_seconds=0.0)
    window = observe_origin(window, batch(5000, 5), now=0.1, length_seconds=0.0)
    assert window_minimum(window) == batch(5000, 5)
    assert next_expiry(window, length_seconds=0.0) is None
    assert observe_origin(window, batch(5000, 5), now=9.0, length_seconds=0.0) is window


def test_a_fall_counts_at_once_and_a_rise_after_the_window() -> None:
    window = observe_origin((), batch(5000, 5), now=0.0, length_seconds=60.0)
    window = observe_origin(window, batch(1000, 1), now=10.0, length_seconds=60.0)
    assert window_minimum(window) == batch(1000, 1)
    window = observe_origin(window, batch(4000, 4), now=20.0, length_seconds=60.0)
    assert window_minimum(window) == batch(1000, 1)
    assert next_expiry(window, length_seconds=60.0) == 80.0
    window = observe_origin(window, batch(4000, 4), now=79.9, length_seconds=60.0)
    assert window_minimum(window) == batch(1000, 1)
    window = observe_origin(window, batch(4000, 4), now=80.0, length_seconds=60.0)
    assert window_minimum(window) == batch(4000, 4)


def test_an_origin_counts_from_the_end_of_its_time_not_from_its_beginning() -> None:
    window = observe_origin((), batch(1000, 1), now=0.0, length_seconds=60.0)
    window = observe_origin(window, batch(4000, 4), now=500.0, length_seconds=60.0)
    assert window_minimum(window) == batch(1000, 1)


def test_resources_are_judged_apart() -> None:
    window = observe_origin((), batch(5000, 1), now=0.0, length_seconds=60.0)
    window = observe_origin(window, batch(1000, 5), now=1.0, length_seconds=60.0)
    assert window_minimum(window) == batch(1000, 1)


def test_an_empty_window_has_no_minimum() -> None:
    assert window_minimum(()) is None


@given(
    st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=60),
    st.sampled_from([0.0, 10.0, 60.0]),
)
def test_the_window_equals_a_naive_minimum(steps: list[tuple[float, int, int]], length: float) -> None:
    window: Window = ()
    now = 0.0
    spans: list[tuple[BatchResources, float]] = []  # value, end of the time in which it held
    for pause, cpu, memory in steps:
        now += pause
        if spans:
            spans[-1] = (spans[-1][0], now)
        origin = BatchResources(cpu_milli=cpu, memory_bytes=memory)
        spans.append((origin, now))
        window = observe_origin(window, origin, now=now, length_seconds=length)
        alive = [value for value, end in spans if now - end < length] or [origin]
        assert window_minimum(window) == BatchResources(
            cpu_milli=min(value.cpu_milli for value in [*alive, origin]),
            memory_bytes=min(value.memory_bytes for value in [*alive, origin]),
        )
