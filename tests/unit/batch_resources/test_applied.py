# SPDX-License-Identifier: Apache-2.0
"""Test what reads prove about the total that a NodeManager works with."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from batch_resources.applied import AppliedEvidence, ManagerReading, observe_reading, start_anew
from batch_resources.resources import YarnResources


def _yarn(units: int) -> YarnResources:
    return YarnResources(memory_mib=units * 1024, vcores=units)


def _read(capacity: int, used: int, heartbeat: int, *, scheduled: int | None = None) -> ManagerReading:
    total = capacity if scheduled is None else scheduled
    return ManagerReading(
        capacity=_yarn(capacity), scheduler_total=_yarn(total), used=_yarn(used), incarnation="one", heartbeat=heartbeat
    )


def _after(*readings: ManagerReading) -> AppliedEvidence:
    evidence = AppliedEvidence()
    for reading in readings:
        evidence = observe_reading(evidence, reading, counts=True)
    return evidence


def test_a_lower_capacity_is_proven_when_the_node_manager_was_heard_twice() -> None:
    evidence = _after(_read(2, 1, 0))
    assert (evidence.used, evidence.proven) == (_yarn(1), None)

    # The answer to this heartbeat brings the total, and may be lost.
    evidence = observe_reading(evidence, _read(2, 1, 1), counts=True)
    assert (evidence.used, evidence.proven) == (_yarn(1), None)

    evidence = observe_reading(evidence, _read(2, 1, 2), counts=True)
    assert (evidence.used, evidence.proven) == (_yarn(1), _yarn(2))


def test_a_fall_of_use_counts_after_one_heartbeat() -> None:
    assert _after(_read(4, 3, 0), _read(4, 1, 1)).used == _yarn(3)
    assert _after(_read(4, 3, 0), _read(4, 1, 1), _read(4, 1, 2)).used == _yarn(1)


def test_reads_without_a_heartbeat_between_them_prove_nothing() -> None:
    evidence = _after(_read(2, 3, 0), *[_read(2, 1, 1)] * 5)

    assert (evidence.used, evidence.proven) == (_yarn(3), None)


def test_what_is_proven_is_proven_anew_by_every_heartbeat_and_rises_with_use_at_once() -> None:
    evidence = _after(_read(2, 2, 0), _read(2, 2, 1), _read(2, 2, 2))

    evidence = observe_reading(evidence, _read(2, 3, 2), counts=True)
    assert evidence.proven == _yarn(3)
    evidence = observe_reading(observe_reading(evidence, _read(2, 1, 3), counts=True), _read(2, 1, 4), counts=True)
    assert evidence.proven == _yarn(2)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(_read(3, 1, 2), id="another capacity"),
        pytest.param(replace(_read(2, 1, 2), incarnation="two"), id="another ResourceManager"),
        pytest.param(_read(2, 1, 2, scheduled=3), id="the scheduler is behind the list"),
        pytest.param(replace(_read(2, 1, 2), scheduler_total=None), id="the scheduler was not read"),
    ],
)
def test_a_read_that_does_not_fit_starts_the_proof_anew(odd: ManagerReading) -> None:
    evidence = _after(_read(2, 1, 0), _read(2, 1, 1), odd)
    assert evidence.proven is None

    # The first of these may be a pair with nothing before it: two heartbeats are needed after it all the same.
    evidence = observe_reading(evidence, _read(2, 1, 3), counts=True)
    evidence = observe_reading(evidence, _read(2, 1, 4), counts=True)
    assert evidence.proven is None
    assert observe_reading(evidence, _read(2, 1, 5), counts=True).proven == _yarn(2)


def test_an_update_of_ours_ends_what_was_proven_and_keeps_use() -> None:
    evidence = _after(_read(2, 1, 0), _read(2, 1, 1), _read(2, 1, 2))

    assert start_anew(evidence) == AppliedEvidence(used=_yarn(1))
    assert observe_reading(evidence, _read(2, 2, 3), counts=False) == AppliedEvidence(used=_yarn(2))
