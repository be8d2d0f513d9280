# SPDX-License-Identifier: Apache-2.0
"""Orders change what is wished for, never what the rules allow: drain, release, pause, cap, fix, observe."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from batch_resources.annotations.orders import Drain, Limit, Orders, Pause
from batch_resources.annotations.origin import OriginState
from batch_resources.ledger import ClaimAction, Hold, ManagerObservation, NodeObservation
from batch_resources.planner.plan import plan_node
from batch_resources.planner.policy import Boundary, Minimum, Mode, Policy
from batch_resources.resources import BatchResources, YarnResources
from batch_resources.sends import Send
from tests.unit.batch_resources.builders import NOW, SETTLED, batch, manager, node, policy, unknown_origin, yarn

FLOOR = yarn(1, 1024)
NOTHING = yarn(0, 0)
FLOOR_CLAIM = BatchResources(cpu_milli=1000, memory_bytes=1 << 30)
GIB = 1 << 30
SHARED = policy()
STRICT = policy(mode=Mode.STRICT, boundary=Boundary(yarn_weight=1, kubernetes_weight=0, kubernetes_minimum=Minimum()))
MODES = [pytest.param(SHARED, id="shared"), pytest.param(STRICT, id="strict")]


def _manager(used: YarnResources = NOTHING, capacity: YarnResources = FLOOR, **changes: Any) -> ManagerObservation:
    proven = capacity.at_least(used)
    return manager(
        **{"capacity": capacity, "used": used, "proven": proven, "outlives_earlier_leaders": True, **changes}
    )


def _node(*managers: ManagerObservation, **changes: Any) -> NodeObservation:
    return node(batch(20000, 64), *managers, **{"claimed": batch(20000, 64), "permissions": SETTLED, **changes})


@pytest.mark.parametrize("mode", MODES)
def test_a_drain_takes_capacity_to_the_floor_at_once_even_below_use(mode: Policy) -> None:
    full = _manager(yarn(6, 6144), yarn(20, 65536), drains=True)
    without_read = replace(SETTLED, requested=None, requested_at=None)
    plan = plan_node(_node(full, permissions=without_read, orders=Orders(drain=Drain())), mode, now=NOW)
    assert plan.managers[0].sends_update
    assert plan.managers[0].next_value == FLOOR
    assert Hold.DRAINING in plan.holds
    assert Hold.FLOOR_OVERCOMMIT not in plan.managers[0].holds


@pytest.mark.parametrize("mode", MODES)
def test_a_drain_goes_on_while_origin_is_unknown(mode: Policy) -> None:
    full = _manager(yarn(6, 6144), yarn(20, 65536), drains=True)
    unknown = unknown_origin(OriginState.DEGRADED)
    plan = plan_node(_node(full, origin=unknown, orders=Orders(drain=Drain())), mode, now=NOW)
    assert plan.managers[0].next_value == FLOOR


def test_in_mode_strict_the_claim_of_a_draining_node_follows_its_containers_by_proof_only() -> None:
    running = _manager(yarn(6, 6144), FLOOR, drains=True, proven=None)
    orders = Orders(drain=Drain())
    waiting = plan_node(_node(running, orders=orders), STRICT, now=NOW)
    assert (waiting.claim, waiting.claim_action) == (batch(20000, 64), ClaimAction.KEEP)
    assert Hold.CAPACITY_FALL_UNPROVEN in waiting.holds
    proven = plan_node(_node(replace(running, proven=yarn(6, 6144)), orders=orders), STRICT, now=NOW)
    assert (proven.claim, proven.claim_action) == (batch(6000, 6), ClaimAction.WRITE)
    empty = plan_node(_node(_manager(drains=True), claimed=batch(6000, 6), orders=orders), STRICT, now=NOW)
    assert (empty.claim, empty.claim_action) == (FLOOR_CLAIM, ClaimAction.WRITE)
    assert Hold.DRAINED in empty.holds


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "unsure",
    [
        pytest.param({"used_is_proven": False}, id="use seen once"),
        pytest.param({"used": yarn(1, 512)}, id="a container"),
        pytest.param({"capacity": yarn(2, 2048), "proven": yarn(2, 2048)}, id="capacity above the floor"),
        pytest.param({"sends": (Send(resources=yarn(4, 4096), sent_at=NOW - 1),)}, id="an update that may land"),
        pytest.param({"reachable": False}, id="nobody answers"),
    ],
)
def test_a_node_is_not_drained_before_that_is_proven(mode: Policy, unsure: dict[str, Any]) -> None:
    orders = Orders(drain=Drain(releases=True))
    plan = plan_node(_node(_manager(**{"drains": True, **unsure}), orders=orders), mode, now=NOW)
    assert Hold.DRAINED not in plan.holds
    assert plan.claim_action is not ClaimAction.REMOVE


def test_one_of_two_node_managers_drains_and_the_other_goes_on() -> None:
    leaving = _manager(yarn(4, 4096), yarn(8, 8192), cluster="a", node_id="a:1", drains=True)
    staying = _manager(cluster="b", node_id="b:1")
    plan = plan_node(_node(leaving, staying, claimed=None), SHARED, now=NOW)
    assert [decision.target for decision in plan.managers] == [FLOOR, yarn(12, 56 * 1024)]
    assert Hold.DRAINING not in plan.holds


@pytest.mark.parametrize("mode", MODES)
def test_a_release_removes_the_entry_when_the_node_is_empty_and_leaves_it_removed(mode: Policy) -> None:
    orders = Orders(drain=Drain(releases=True))
    empty = _manager(drains=True)
    plan = plan_node(_node(empty, orders=orders, claimed=FLOOR_CLAIM), mode, now=NOW)
    assert (plan.claim, plan.claim_action) == (None, ClaimAction.REMOVE)
    gone = plan_node(_node(empty, orders=orders, claimed=None), mode, now=NOW)
    assert (gone.claim, gone.claim_action) == (None, ClaimAction.KEEP)
    assert Hold.RELEASED in gone.holds
    small = replace(empty, used=yarn(1, 512))
    assert plan_node(_node(small, orders=orders, claimed=None), mode, now=NOW).claim_action is ClaimAction.KEEP


@pytest.mark.parametrize("mode", MODES)
def test_a_released_node_that_got_capacity_again_is_claimed_and_drained_again(mode: Policy) -> None:
    grown = _manager(yarn(3, 3072), yarn(8, 8192), drains=True)
    plan = plan_node(_node(grown, orders=Orders(drain=Drain(releases=True)), claimed=None), mode, now=NOW)
    assert plan.claim_action is ClaimAction.WRITE
    assert plan.managers[0].next_value == FLOOR


def test_the_order_to_release_goes_with_the_last_node_manager_but_not_before_it_has_been_gone_for_long() -> None:
    orders = Orders(drain=Drain(releases=True))
    left = replace(_node(orders=orders, claimed=None), managers=())
    assert plan_node(left, SHARED, now=NOW).claim_action is ClaimAction.KEEP
    assert plan_node(replace(left, is_abandoned=True), SHARED, now=NOW).claim_action is ClaimAction.FORGET
    other = replace(left, is_abandoned=True, orders=Orders(drain=Drain()))
    assert plan_node(other, SHARED, now=NOW).claim_action is ClaimAction.KEEP


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_node_shows_what_would_be_done_and_does_none_of_it(mode: Policy) -> None:
    busy = _manager(yarn(25, 65536), yarn(25, 65536), proven=None)
    seen = _node(busy, claimed=batch(1000, 1))
    free = plan_node(seen, mode, now=NOW)
    assert free.managers[0].sends_update
    assert free.claim_action is ClaimAction.WRITE
    paused = plan_node(replace(seen, orders=Orders(pause=Pause())), mode, now=NOW)
    assert not paused.managers[0].sends_update
    assert paused.managers[0].is_held_back
    assert paused.managers[0].target == free.managers[0].target
    assert (paused.claim_action, paused.held_back) == (ClaimAction.KEEP, ClaimAction.WRITE)
    assert paused.claim == free.claim
    assert not paused.wants_fresh_read
    assert Hold.PAUSED in paused.holds


@pytest.mark.parametrize("mode", MODES)
def test_observing_holds_everything_back(mode: Policy) -> None:
    plan = plan_node(_node(claimed=None), replace(mode, observes=True), now=NOW)
    assert not any(decision.sends_update for decision in plan.managers)
    assert (plan.claim_action, plan.held_back) == (ClaimAction.KEEP, ClaimAction.WRITE)
    assert not plan.wants_fresh_read
    assert Hold.OBSERVING in plan.holds


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("orders", "target", "holds"),
    [
        pytest.param(Orders(cap=Limit(cpu_milli=4500)), yarn(4, 65536), {Hold.CAPPED}, id="cap of one resource"),
        pytest.param(Orders(cap=Limit(cpu_milli=99000)), yarn(20, 65536), {Hold.CAPPED}, id="cap above what is there"),
        pytest.param(Orders(cap=Limit(cpu_milli=0, memory_bytes=0)), FLOOR, {Hold.CAPPED}, id="cap below the floor"),
        pytest.param(
            Orders(fix=Limit(cpu_milli=6000, memory_bytes=6 * GIB)), yarn(6, 6144), {Hold.FIXED}, id="fix of both"
        ),
        pytest.param(
            Orders(fix=Limit(cpu_milli=21000)),
            yarn(20, 65536),
            {Hold.FIXED, Hold.FIX_EXCEEDS_BUDGET},
            id="fix above what is there",
        ),
        pytest.param(
            Orders(fix=Limit(cpu_milli=6000), cap=Limit(cpu_milli=5000)),
            yarn(5, 65536),
            {Hold.FIXED, Hold.CAPPED},
            id="the cap wins over the fix",
        ),
    ],
)
def test_limits_bound_the_target(mode: Policy, orders: Orders, target: YarnResources, holds: set[Hold]) -> None:
    plan = plan_node(_node(orders=orders), mode, now=NOW)
    assert plan.managers[0].target == target
    assert holds <= set(plan.holds)


def test_a_fix_gives_yarn_what_weights_would_not_and_still_waits_for_every_rule() -> None:
    weighted = policy(mode=Mode.STRICT, boundary=Boundary(kubernetes_minimum=Minimum(absolute=batch(2000, 2))))
    orders = Orders(fix=Limit(cpu_milli=20000, memory_bytes=64 * GIB))
    seen = _node(claimed=FLOOR_CLAIM, permissions=replace(SETTLED, allocatable=batch(19000, 63)), orders=orders)
    plan = plan_node(seen, weighted, now=NOW)
    assert plan.managers[0].target == yarn(20, 65536)
    assert (plan.claim, plan.claim_action) == (batch(20000, 64), ClaimAction.WRITE)
    assert not plan.managers[0].sends_update  # nothing is published yet
    booked = replace(_node(orders=orders), requested=batch(5000, 5))
    fresh = replace(booked, permissions=replace(SETTLED, requested=batch(5000, 5)))
    held = plan_node(fresh, weighted, now=NOW)
    assert held.managers[0].next_value == yarn(15, 59 * 1024)
    assert Hold.FIX_EXCEEDS_BUDGET in held.holds


@pytest.mark.parametrize("mode", MODES)
def test_an_order_that_cannot_be_read_stops_growth_and_nothing_else(mode: Policy) -> None:
    orders = Orders(errors=("annotation yarn-copilot/cap ...",))
    plan = plan_node(_node(orders=orders), mode, now=NOW)
    assert not plan.managers[0].sends_update
    assert Hold.ORDER_MALFORMED in plan.holds
    tight = replace(_node(_manager(capacity=yarn(20, 65536)), orders=orders), requested=batch(8000, 8))
    falling = plan_node(replace(tight, permissions=replace(SETTLED, requested=batch(8000, 8))), mode, now=NOW)
    assert falling.managers[0].next_value == yarn(12, 56 * 1024)
