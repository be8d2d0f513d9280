# SPDX-License-Identifier: Apache-2.0
"""Test what NodeManagers are told in mode shared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources.annotations.origin import OriginState
from batch_resources.growth import observe_origin
from batch_resources.ledger import Hold, ManagerPlan
from batch_resources.planner.shared import plan_node
from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.sends import mark_lost, record_send
from batch_resources.units import UnitModel
from tests.unit.batch_resources.builders import (
    GIB,
    NOW,
    POLICY,
    batch,
    manager,
    node,
    policy,
    unknown_origin,
    yarn,
)


def only(plans: tuple[ManagerPlan, ...]) -> ManagerPlan:
    assert len(plans) == 1
    return plans[0]


def test_capacity_is_origin_less_pods_third_parties_and_reserve_rounded_down() -> None:
    observed = node(batch(20000, 64), requested=batch(3500, 8), others=batch(1000, 4))
    chosen = policy(reserve_percent_cpu=5, reserve_absolute=BatchResources(cpu_milli=1, memory_bytes=1))
    plan = plan_node(observed, chosen, now=NOW)
    assert plan.reserve == BatchResources(cpu_milli=1001, memory_bytes=1)
    # 20000 - 1000 - 1001 - 3500 = 14499 milli-cores; 64 - 4 - 8 GiB less one byte
    assert only(plan.managers).target == yarn(14, 52 * 1024 - 1)
    assert only(plan.managers).sends_update
    assert plan.holds == ()


def test_the_node_of_koordinators_own_documentation_gets_whole_units() -> None:
    plan = plan_node(node(BatchResources(cpu_milli=60646, memory_bytes=245976973438)), POLICY, now=NOW)
    assert only(plan.managers).target == yarn(60, 234581)


def test_nothing_is_sent_when_capacity_is_right() -> None:
    plan = plan_node(node(batch(20000, 64), manager(capacity=yarn(20, 65536))), POLICY, now=NOW)
    assert not only(plan.managers).sends_update


def test_a_fall_goes_below_use_at_once() -> None:
    plan = plan_node(node(batch(4000, 8), manager(capacity=yarn(20, 65536), used=yarn(12, 24576))), POLICY, now=NOW)
    assert only(plan.managers).target == yarn(4, 8192)
    assert only(plan.managers).sends_update


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        pytest.param(batch(6000, 6), yarn(6, 6144), id="half-is-booked"),
        pytest.param(batch(12000, 12), yarn(1, 1024), id="all-is-booked"),
        pytest.param(batch(20000, 40), yarn(1, 1024), id="more-is-booked-than-there-is"),
    ],
)
def test_capacity_never_goes_below_the_floor(requested: BatchResources, expected: object) -> None:
    plan = plan_node(node(batch(12000, 12), requested=requested), POLICY, now=NOW)
    assert only(plan.managers).target == expected
    assert (Hold.FLOOR_OVERCOMMIT in only(plan.managers).holds) == (expected == yarn(1, 1024))


@pytest.mark.parametrize("state", [OriginState.ABSENT, OriginState.DEGRADED, OriginState.MALFORMED])
@pytest.mark.parametrize(
    ("capacity", "used", "expected"),
    [
        pytest.param(yarn(20, 20480), yarn(12, 8192), yarn(12, 8192), id="falls-to-use"),
        pytest.param(yarn(10, 8192), yarn(12, 9000), yarn(10, 8192), id="is-not-raised-to-use"),
        pytest.param(yarn(20, 20480), yarn(0, 0), yarn(1, 1024), id="falls-to-floor"),
        pytest.param(yarn(20, 20480), None, yarn(1, 1024), id="use-was-never-read"),
    ],
)
def test_an_unknown_origin_lets_use_be_replaced_but_nothing_grow(
    state: OriginState, capacity: object, used: object, expected: object
) -> None:
    observed = node(None, manager(capacity=capacity, used=used), origin=unknown_origin(state))
    plan = plan_node(observed, POLICY, now=NOW)
    assert plan.origin is None
    assert plan.budget is None
    assert only(plan.managers).target == expected


def test_an_origin_that_is_too_old_counts_as_unknown() -> None:
    observed = node(None, manager(capacity=yarn(10, 10240), used=yarn(2, 2048)), origin_age_seconds=900.0)
    plan = plan_node(observed, POLICY, now=NOW)
    assert Hold.ORIGIN_STALE in plan.holds
    assert only(plan.managers).target == yarn(2, 2048)
    young = node(None, manager(capacity=yarn(10, 10240)), origin_age_seconds=899.0)
    assert plan_node(young, POLICY, now=NOW).recheck_at == NOW + 1.0


@pytest.mark.parametrize(
    ("require", "expected"),
    [pytest.param(True, yarn(2, 2048), id="required"), pytest.param(False, yarn(20, 65536), id="trusted")],
)
def test_an_origin_of_unknown_age_does_not_let_capacity_grow(require: bool, expected: object) -> None:
    observed = node(None, manager(capacity=yarn(2, 2048)), origin_age_seconds=None)
    plan = plan_node(observed, policy(require_node_metric=require), now=NOW)
    assert only(plan.managers).target == expected
    shrinking = node(batch(4000, 4), manager(capacity=yarn(9, 65536)), origin_age_seconds=None)
    assert only(plan_node(shrinking, policy(require_node_metric=require), now=NOW).managers).target == yarn(4, 4096)


@pytest.mark.parametrize(
    ("changes", "hold"),
    [
        pytest.param({"others": None}, Hold.THIRD_PARTY_MALFORMED, id="third-parties-cannot-be-read"),
        pytest.param({"requested": None}, Hold.POD_REQUEST_MALFORMED, id="a-pod-cannot-be-counted"),
    ],
)
def test_a_ledger_with_a_hole_holds_the_node(changes: dict[str, None], hold: Hold) -> None:
    observed = node(None, manager(capacity=yarn(9, 9216), used=yarn(3, 3072)), **changes)
    plan = plan_node(observed, POLICY, now=NOW)
    assert hold in plan.holds
    assert only(plan.managers).target == yarn(3, 3072)


def test_growth_goes_to_the_smallest_origin_of_the_window() -> None:
    window = observe_origin((), batch(6000, 6), now=NOW - 30, length_seconds=60.0)
    window = observe_origin(window, batch(20000, 64), now=NOW - 10, length_seconds=60.0)
    plan = plan_node(node(batch(20000, 64), window=window), policy(growth_window_seconds=60.0), now=NOW)
    assert plan.window_minimum == batch(6000, 6)
    assert Hold.GROWTH_WINDOW in plan.holds
    assert only(plan.managers).target == yarn(6, 6144)
    assert plan.recheck_at == NOW + 50


@pytest.mark.parametrize(
    ("capacity", "sends"),
    [
        pytest.param(yarn(19, 65000), False, id="growth-inside-both-bands"),
        pytest.param(yarn(17, 65000), True, id="vcores-grow-by-more"),
        pytest.param(yarn(19, 64000), True, id="memory-grows-by-more"),
        pytest.param(yarn(21, 65536), True, id="a-fall-is-always-sent"),
        pytest.param(yarn(21, 65000), True, id="one-grows-one-falls"),
        pytest.param(yarn(20, 65536), False, id="nothing-differs"),
    ],
)
def test_a_small_growth_is_not_worth_a_message(capacity: object, sends: bool) -> None:
    plan = plan_node(node(batch(20000, 64), manager(capacity=capacity)), policy(dead_band=yarn(2, 1024)), now=NOW)
    assert only(plan.managers).sends_update is sends


def test_a_value_that_is_on_its_way_is_not_sent_again_unless_it_was_lost() -> None:
    outstanding = record_send((), yarn(20, 65536), now=NOW - 1)
    waiting = plan_node(node(batch(20000, 64), manager(sends=outstanding)), POLICY, now=NOW)
    assert not only(waiting.managers).sends_update
    lost = mark_lost(outstanding, sent_at=NOW - 1)
    assert only(plan_node(node(batch(20000, 64), manager(sends=lost)), POLICY, now=NOW).managers).sends_update


def test_a_node_that_the_resource_manager_refused_waits_its_time() -> None:
    observed = node(batch(20000, 64), manager(retry_at=NOW + 4))
    plan = plan_node(observed, POLICY, now=NOW)
    assert not only(plan.managers).sends_update
    assert Hold.UNRECOGNIZED_BACKOFF in only(plan.managers).holds
    assert plan.recheck_at == NOW + 4
    assert only(plan_node(observed, POLICY, now=NOW + 4).managers).sends_update


@pytest.mark.parametrize(
    ("changes", "hold"),
    [
        pytest.param({"reachable": False}, Hold.CLUSTER_UNREACHABLE, id="cluster-is-down"),
        pytest.param({"accepts_updates": False}, Hold.NODE_MANAGER_NOT_RUNNING, id="lost"),
        pytest.param({"capacity": None}, Hold.NODE_MANAGER_UNMATCHED, id="not-listed"),
    ],
)
def test_a_node_manager_that_cannot_be_told_is_left_alone(changes: dict[str, Any], hold: Hold) -> None:
    plan = plan_node(node(batch(20000, 64), manager(**changes)), POLICY, now=NOW)
    assert only(plan.managers).target is None
    assert only(plan.managers).holds == (hold,)
    assert not only(plan.managers).sends_update


def test_nothing_is_sent_to_a_node_whose_claim_somebody_else_writes() -> None:
    plan = plan_node(node(batch(20000, 64), claim_is_foreign=True), POLICY, now=NOW)
    assert not only(plan.managers).sends_update


def test_clusters_on_one_node_share_by_weight() -> None:
    observed = node(batch(20000, 40), manager("a", weight=3), manager("b", "nm-1:8042", weight=1))
    plan = plan_node(observed, POLICY, now=NOW)
    assert [decision.target for decision in plan.managers] == [yarn(15, 30720), yarn(5, 10240)]


def test_a_cluster_that_is_down_keeps_its_part_and_the_other_gets_the_rest() -> None:
    down = manager("a", reachable=False, capacity=yarn(8, 8192), used=yarn(2, 10240))
    observed = node(batch(20000, 40), down, manager("b", "nm-1:8042"))
    plan = plan_node(observed, POLICY, now=NOW)
    assert [decision.target for decision in plan.managers] == [None, yarn(12, 30720)]


def test_a_lost_node_manager_keeps_what_it_used_out_of_the_others_budget() -> None:
    lost = manager("a", accepts_updates=False, capacity=yarn(8, 8192), used=yarn(2, 2048))
    plan = plan_node(node(batch(20000, 40), lost, manager("b", "nm-1:8042")), POLICY, now=NOW)
    assert plan.managers[1].target == yarn(18, 40 * 1024 - 2048)


amounts = st.builds(BatchResources, cpu_milli=st.integers(0, 2**40), memory_bytes=st.integers(0, 2**50))


@given(amounts, amounts, amounts, st.integers(1, 5000))
def test_targets_never_add_up_to_more_than_the_budget_or_the_floors(
    origin: BatchResources, requested: BatchResources, others: BatchResources, milli_per_vcore: int
) -> None:
    chosen = policy(units=UnitModel(milli_cores_per_vcore=milli_per_vcore), floor=yarn(0, 0))
    observed = node(origin, manager("a", weight=2), manager("b", "x:1", weight=5), requested=requested, others=others)
    plan = plan_node(observed, chosen, now=NOW)
    total = ZERO_BATCH
    for decision in plan.managers:
        assert decision.target is not None
        total = total + chosen.units.to_batch(decision.target)
    assert plan.budget is not None
    assert total.fits_in(plan.budget)
    assert (total + requested + others).fits_in(origin.at_least(requested + others))


def test_memory_is_counted_in_mebibytes() -> None:
    plan = plan_node(node(BatchResources(cpu_milli=5000, memory_bytes=3 * GIB + 5)), POLICY, now=NOW)
    assert only(plan.managers).target == yarn(5, 3072)
