# SPDX-License-Identifier: Apache-2.0
"""Every dip of origin has its own path: what YARN keeps, what stays claimed, and when it is over."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from batch_resources.annotations.origin import OriginReading, OriginState
from batch_resources.dips import Dip, DipTimes, Figure, doubted_until, figure_of, observe_dip
from batch_resources.ledger import ClaimAction, Hold, NodeObservation, NodePlan
from batch_resources.planner.plan import plan_node
from batch_resources.planner.policy import Boundary, Minimum, Mode
from batch_resources.resources import ZERO_BATCH, BatchResources
from tests.unit.batch_resources.builders import NOW, SETTLED, batch, manager, node, policy, unknown_origin, yarn

TIMES = DipTimes(
    zero_hold_seconds=15.0,
    degraded_recovery_seconds=60.0,
    absent_recovery_seconds=30.0,
    malformed_recovery_seconds=5.0,
)
KNOWN = OriginReading(state=OriginState.KNOWN, resources=batch(20000, 64), detail="")
ZERO = OriginReading(state=OriginState.KNOWN, resources=ZERO_BATCH, detail="")
DEGRADED, ABSENT, MALFORMED = (
    unknown_origin(state) for state in (OriginState.DEGRADED, OriginState.ABSENT, OriginState.MALFORMED)
)
READINGS = {
    Figure.AMOUNT: KNOWN,
    Figure.ZERO: ZERO,
    Figure.DEGRADED: DEGRADED,
    Figure.ABSENT: ABSENT,
    Figure.MALFORMED: MALFORMED,
}
STRICT = policy(mode=Mode.STRICT, boundary=Boundary(kubernetes_weight=0, kubernetes_minimum=Minimum()), dips=TIMES)
CLAIMED = batch(12000, 24)
USED = BatchResources(cpu_milli=5000, memory_bytes=10 << 30)


@pytest.mark.parametrize(("figure", "reading"), READINGS.items())
def test_tells_the_kinds_of_origin_apart(figure: Figure, reading: OriginReading) -> None:
    assert figure_of(reading) is figure


def test_one_resource_of_zero_is_an_amount() -> None:
    assert figure_of(replace(KNOWN, resources=batch(0, 64))) is Figure.AMOUNT


@pytest.mark.parametrize("figure", READINGS)
def test_the_first_reading_of_a_process_is_believed_but_for_a_zero(figure: Figure) -> None:
    until = doubted_until(observe_dip(None, READINGS[figure], now=NOW), TIMES)
    assert until in (None, NOW) or (figure is Figure.ZERO and until == NOW + 15)


@pytest.mark.parametrize(
    ("before", "seconds"),
    [(Figure.ZERO, 0), (Figure.DEGRADED, 60), (Figure.ABSENT, 30), (Figure.MALFORMED, 5)],
)
def test_the_end_of_a_dip_is_believed_after_the_time_of_its_kind(before: Figure, seconds: float) -> None:
    dip = observe_dip(observe_dip(None, READINGS[before], now=NOW - 9), KNOWN, now=NOW)
    assert doubted_until(dip, TIMES) == NOW + seconds
    assert observe_dip(dip, replace(KNOWN, resources=batch(1, 1)), now=NOW + 7) == dip


def _plan(reading: OriginReading, dip: Dip, *, now: float = NOW) -> NodePlan:
    """Plan a node on which YARN has 12 vcores, all claimed, and uses 5."""
    return plan_node(_node(reading, dip), STRICT, now=now)


def _node(reading: OriginReading, dip: Dip) -> NodeObservation:
    running = manager(
        capacity=yarn(12, 24 * 1024),
        used=yarn(5, 10 * 1024),
        proven=yarn(12, 24 * 1024),
        outlives_earlier_leaders=True,
    )
    open_ = replace(SETTLED, allocatable=batch(8000, 40))
    return node(KNOWN.resources, running, origin=reading, claimed=CLAIMED, permissions=open_, dip=dip)


@pytest.mark.parametrize(
    ("figure", "hold"),
    [
        (Figure.DEGRADED, Hold.ORIGIN_DEGRADED),
        (Figure.ABSENT, Hold.ORIGIN_ABSENT),
        (Figure.MALFORMED, Hold.ORIGIN_MALFORMED),
        (Figure.ZERO, Hold.ORIGIN_ZERO_DOUBTED),
    ],
)
def test_an_origin_that_cannot_be_used_takes_capacity_to_use_and_leaves_the_claim(figure: Figure, hold: Hold) -> None:
    plan = _plan(READINGS[figure], Dip(figure=figure, since=NOW - 1, before=Figure.AMOUNT))
    assert plan.managers[0].next_value == yarn(5, 10 * 1024)
    assert (plan.claim, plan.claim_action) == (CLAIMED, ClaimAction.KEEP)
    assert hold in plan.holds
    assert plan.origin is None


@pytest.mark.parametrize("before", [Figure.DEGRADED, Figure.ABSENT, Figure.MALFORMED])
def test_an_origin_that_is_back_counts_after_its_time_and_not_before(before: Figure) -> None:
    dip = Dip(figure=Figure.AMOUNT, since=NOW - TIMES.recovery_seconds(before) + 1, before=before)
    early = _plan(KNOWN, dip)
    assert Hold.ORIGIN_RECOVERING in early.holds
    assert early.managers[0].next_value == yarn(5, 10 * 1024)
    assert early.claim_action is ClaimAction.KEEP
    assert early.recheck_at == NOW + 1
    late = _plan(KNOWN, dip, now=NOW + 1)
    assert Hold.ORIGIN_RECOVERING not in late.holds
    assert late.managers[0].target == yarn(20, 64 * 1024)


def test_a_zero_that_lasts_is_a_fall_like_any_other() -> None:
    dip = Dip(figure=Figure.ZERO, since=NOW - 15, before=Figure.AMOUNT)
    plan = plan_node(replace(_node(ZERO, dip), window=()), STRICT, now=NOW)
    assert Hold.ORIGIN_ZERO_DOUBTED not in plan.holds


def test_a_momentary_zero_is_forgotten_at_once() -> None:
    dip = observe_dip(observe_dip(observe_dip(None, KNOWN, now=NOW - 9), ZERO, now=NOW - 3), KNOWN, now=NOW)
    plan = _plan(KNOWN, dip)
    assert plan.origin == KNOWN.resources
    assert plan.managers[0].target == yarn(20, 64 * 1024)
