# SPDX-License-Identifier: Apache-2.0
"""Test when a fall of use is believed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batch_resources.evidence import UseEvidence, UseReading, forget_pending, observe_use
from batch_resources.resources import YarnResources
from tests.unit.batch_resources.builders import yarn


def read(
    evidence: UseEvidence, used: YarnResources, at: float, *, took: float = 0.0, sending: bool = False
) -> UseEvidence:
    return observe_use(
        evidence,
        UseReading(used=used, began_at=at, ended_at=at + took),
        heartbeat_seconds=1.0,
        has_outstanding_send=sending,
    )


def settled_at(used: YarnResources) -> UseEvidence:
    evidence = read(read(UseEvidence(), used, 0.0), used, 1.0)
    assert evidence == UseEvidence(settled=used, complete=True)
    return evidence


def test_the_first_read_counts_but_proves_nothing() -> None:
    evidence = read(UseEvidence(), yarn(4, 4096), 0.0)
    assert evidence.settled == yarn(4, 4096)
    assert not evidence.complete


def test_two_reads_a_heartbeat_apart_prove_a_use() -> None:
    evidence = read(UseEvidence(), yarn(4, 4096), 0.0)
    assert not read(evidence, yarn(4, 4096), 0.9).complete
    assert read(evidence, yarn(4, 4096), 1.0).complete


def test_a_rise_counts_at_once_per_resource() -> None:
    evidence = read(settled_at(yarn(4, 4096)), yarn(5, 1024), 2.0)
    assert evidence.settled == yarn(5, 4096)
    assert evidence.complete


def test_a_momentary_zero_changes_nothing() -> None:
    evidence = read(settled_at(yarn(4, 4096)), yarn(0, 0), 2.0)
    assert evidence.settled == yarn(4, 4096)
    assert evidence.is_falling
    assert read(evidence, yarn(4, 4096), 3.0) == settled_at(yarn(4, 4096))


def test_a_fall_is_believed_at_the_second_read_a_heartbeat_later() -> None:
    evidence = read(settled_at(yarn(4, 4096)), yarn(1, 1024), 2.0)
    evidence = read(evidence, yarn(1, 1024), 2.9)
    assert evidence.settled == yarn(4, 4096)
    evidence = read(evidence, yarn(1, 1024), 3.0)
    assert evidence.settled == yarn(1, 1024)
    assert not evidence.is_falling


def test_a_slow_read_and_the_next_one_may_show_the_same_moment() -> None:
    evidence = read(settled_at(yarn(4, 4096)), yarn(1, 1024), 2.0, took=1.5)
    evidence = read(evidence, yarn(1, 1024), 3.6)
    assert evidence.settled == yarn(4, 4096)
    evidence = read(evidence, yarn(1, 1024), 4.5)
    assert evidence.settled == yarn(1, 1024)


def test_a_fall_goes_only_to_the_highest_use_in_between() -> None:
    evidence = read(settled_at(yarn(4, 4096)), yarn(3, 3072), 2.0)
    evidence = read(evidence, yarn(0, 0), 3.0)
    assert evidence.settled == yarn(3, 3072)
    evidence = read(evidence, yarn(1, 1024), 4.0)
    assert evidence.settled == yarn(1, 1024)


def test_nothing_falls_while_an_update_is_outstanding() -> None:
    evidence = settled_at(yarn(4, 4096))
    for step in range(5):
        evidence = read(evidence, yarn(0, 0), 2.0 + step, sending=True)
        assert evidence.settled == yarn(4, 4096)
        assert not evidence.is_falling
    assert read(evidence, yarn(6, 512), 9.0, sending=True).settled == yarn(6, 4096)


def test_a_send_starts_the_wait_anew() -> None:
    evidence = forget_pending(read(settled_at(yarn(4, 4096)), yarn(1, 1024), 2.0))
    assert not evidence.is_falling
    assert read(evidence, yarn(1, 1024), 3.0).settled == yarn(4, 4096)
    assert forget_pending(evidence) is evidence


def test_an_unchanged_use_gives_the_very_same_evidence() -> None:
    evidence = settled_at(yarn(4, 4096))
    assert read(evidence, yarn(4, 4096), 5.0) is evidence


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 4), st.floats(0.05, 2.0), st.floats(0.0, 2.0), st.booleans()),
        min_size=1,
        max_size=40,
    )
)
def test_settled_use_never_lies_below_the_highest_read_of_the_last_heartbeat(
    steps: list[tuple[int, int, float, float, bool]],
) -> None:
    evidence, now = UseEvidence(), 0.0
    reads: list[tuple[float, YarnResources]] = []
    for vcores, memory, pause, took, sending in steps:
        now += pause
        used = yarn(vcores, memory)
        reads.append((now + took, used))
        evidence = read(evidence, used, now, took=took, sending=sending)
        assert evidence.settled is not None
        for ended, seen in reads:
            if ended > now - 1.0:
                assert seen.fits_in(evidence.settled)
        now += took
        assert len(evidence.pending) <= 45
