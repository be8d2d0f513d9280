# SPDX-License-Identifier: Apache-2.0
"""Mode strict on a real node's quantities: each step of a transfer, in both directions, and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from batch_resources.annotations.origin import OriginState
from batch_resources.ledger import ClaimAction, Demand, Hold, ManagerObservation, NodeObservation, Permissions
from batch_resources.planner.plan import plan_node
from batch_resources.planner.policy import Boundary, Minimum, Mode
from batch_resources.resources import BatchResources, YarnResources
from batch_resources.sends import Send
from tests.unit.batch_resources.builders import NOW, SETTLED, batch, manager, node, policy, unknown_origin, yarn

FLOOR = BatchResources(cpu_milli=1000, memory_bytes=1 << 30)
ALL = policy(mode=Mode.STRICT, boundary=Boundary(yarn_weight=1, kubernetes_weight=0, kubernetes_minimum=Minimum()))


def _manager(cluster: str = "default", node_id: str = "nm-1:8041", **changes: Any) -> ManagerObservation:
    return manager(cluster, node_id, **{"outlives_earlier_leaders": True, **changes})


def _node(*managers: ManagerObservation, **changes: Any) -> NodeObservation:
    """Give a node of 20 cores and 64 GiB, all of it claimed, published and settled, C still at the floor."""
    ready: dict[str, Any] = {"claimed": batch(20000, 64), "permissions": SETTLED}
    return node(batch(20000, 64), *(managers or (_manager(),)), **{**ready, **changes})


def _open(**changes: Any) -> Permissions:
    return replace(SETTLED, **changes)


def test_claims_before_it_grows() -> None:
    seen = _open(allocatable=batch(19000, 63), requested=None, requested_at=None)
    plan = plan_node(_node(claimed=FLOOR, permissions=seen), ALL, now=NOW)
    assert (plan.claim, plan.claim_action) == (batch(20000, 64), ClaimAction.WRITE)
    assert not plan.managers[0].sends_update
    assert plan.managers[0].target == yarn(20, 65536)


def test_grows_when_claimed_published_settled_and_freshly_read() -> None:
    plan = plan_node(_node(), ALL, now=NOW)
    assert plan.managers[0].sends_update
    assert plan.managers[0].next_value == yarn(20, 65536)
    assert plan.claim_action is ClaimAction.KEEP


@pytest.mark.parametrize(("lingering", "given"), [(batch(500, 0), yarn(19, 65536)), (batch(0, 1), yarn(20, 64512))])
def test_plans_a_node_on_which_one_resource_alone_lingers(lingering: BatchResources, given: YarnResources) -> None:
    plan = plan_node(_node(lingering=lingering), ALL, now=NOW)
    assert plan.managers[0].next_value == given


def test_a_fall_that_makes_room_for_pods_waits_for_a_fresh_read() -> None:
    gives = replace(ALL, boundary=replace(ALL.boundary, yarn_weight=1, kubernetes_weight=1))
    full = _manager(capacity=yarn(20, 65536))
    plan = plan_node(_node(full, permissions=_open(requested=None, requested_at=None)), gives, now=NOW)
    assert plan.wants_fresh_read
    assert not plan.managers[0].sends_update
    read = plan_node(_node(full), gives, now=NOW)
    assert (read.managers[0].sends_update, read.managers[0].next_value) == (True, yarn(10, 32768))


def test_asks_for_a_fresh_read_when_one_resource_falls_below_its_use_and_the_other_stays() -> None:
    busy = _manager(capacity=yarn(20, 65536), used=yarn(12, 12288))
    fallen = node(batch(8000, 64)).origin
    seen = _open(allocatable=batch(0, 0), requested=None, requested_at=None)
    plan = plan_node(_node(busy, origin=fallen, window=node(batch(8000, 64)).window, permissions=seen), ALL, now=NOW)
    assert plan.wants_fresh_read
    assert not plan.managers[0].sends_update


@pytest.mark.parametrize(
    ("changes", "hold"),
    [
        pytest.param({"allocatable": batch(1000, 1)}, Hold.PUBLICATION_AWAITED, id="not published"),
        pytest.param({"settle_since": NOW - 9, "requested": None}, Hold.SETTLING, id="not settled"),
        pytest.param({"settle_since": None, "requested": None}, Hold.SETTLING, id="no version seen"),
        pytest.param({"requested": None}, Hold.FRESH_READ_AWAITED, id="no fresh read"),
        pytest.param({"requested_at": NOW - 3}, Hold.FRESH_READ_AWAITED, id="an old fresh read"),
        pytest.param(
            {"settle_since": NOW - 10.05, "requested_at": NOW - 0.1}, Hold.FRESH_READ_AWAITED, id="read too early"
        ),
    ],
)
def test_waits_with_a_reason(changes: dict[str, Any], hold: Hold) -> None:
    plan = plan_node(_node(permissions=_open(**changes)), ALL, now=NOW)
    assert not plan.managers[0].sends_update or plan.managers[0].next_value == yarn(1, 1024)
    assert hold in plan.holds


@pytest.mark.parametrize("changes", [{"counter_is_ours": False}, {"has_outstanding_patch": True}])
def test_writes_an_equal_claim_where_a_growth_needs_its_counter(changes: dict[str, Any]) -> None:
    plan = plan_node(_node(permissions=_open(**changes)), ALL, now=NOW)
    assert not plan.managers[0].sends_update
    assert (plan.claim, plan.claim_action) == (batch(20000, 64), ClaimAction.WRITE)


def test_grows_no_further_than_a_fresh_read_allows() -> None:
    plan = plan_node(_node(permissions=_open(requested=batch(4000, 8))), ALL, now=NOW)
    assert plan.managers[0].next_value == yarn(16, 57344)


def test_one_resource_waits_for_the_other_without_moving_it() -> None:
    """Memory is not published yet: cpu may grow alone, memory stays where it is."""
    plan = plan_node(_node(permissions=_open(allocatable=batch(0, 4))), ALL, now=NOW)
    assert plan.managers[0].next_value == yarn(20, 1024)


def test_lowers_capacity_before_the_claim_and_the_claim_by_proof_only() -> None:
    gives = replace(ALL, boundary=replace(ALL.boundary, yarn_weight=0, kubernetes_weight=1))
    full = _manager(capacity=yarn(20, 65536))
    first = plan_node(_node(full), gives, now=NOW)
    assert first.managers[0].next_value == yarn(1, 1024)
    assert first.claim_action is ClaimAction.KEEP
    lowered = _manager(capacity=yarn(1, 1024))
    unproven = plan_node(_node(lowered), gives, now=NOW)
    assert unproven.claim_action is ClaimAction.KEEP
    assert Hold.CAPACITY_FALL_UNPROVEN in unproven.holds
    proven = plan_node(_node(replace(lowered, proven=yarn(1, 1024))), gives, now=NOW)
    assert (proven.claim, proven.claim_action) == (FLOOR, ClaimAction.WRITE)


def test_an_update_that_may_still_land_keeps_the_claim() -> None:
    sent = (Send(resources=yarn(10, 10240), sent_at=NOW - 1, answered_at=NOW - 1, is_confirmed=True),)
    gives = replace(ALL, boundary=replace(ALL.boundary, yarn_weight=0, kubernetes_weight=1))
    seen = _node(_manager(proven=yarn(1, 1024), sends=sent))
    plan = plan_node(seen, gives, now=NOW)
    assert plan.claim == batch(10000, 10)


def test_says_nothing_to_yarn_before_the_messages_of_an_earlier_leader_died() -> None:
    plan = plan_node(_node(_manager(outlives_earlier_leaders=False, capacity=yarn(20, 65536))), ALL, now=NOW)
    assert not plan.managers[0].sends_update
    assert Hold.EARLIER_LEADER_AWAITED in plan.managers[0].holds
    assert plan.claim_action is ClaimAction.KEEP


def test_unknown_origin_takes_capacity_to_use_and_leaves_the_claim() -> None:
    running = _manager(capacity=yarn(20, 65536), used=yarn(3, 4096), proven=yarn(20, 65536))
    plan = plan_node(_node(running, origin=unknown_origin(OriginState.DEGRADED), window=()), ALL, now=NOW)
    assert plan.managers[0].next_value == yarn(3, 4096)
    assert plan.managers[0].sends_update
    assert plan.claim_action is ClaimAction.KEEP


def test_use_above_the_claim_is_claimed_at_once() -> None:
    plan = plan_node(_node(_manager(used=yarn(5, 2048)), claimed=FLOOR, permissions=Permissions()), ALL, now=NOW)
    assert plan.claim_action is ClaimAction.WRITE
    assert plan.claim is not None
    assert batch(5000, 2).fits_in(plan.claim)


def test_two_clusters_share_the_claim_and_one_that_was_not_read_stops_the_other() -> None:
    one = _manager("one", "nm-1:8041")
    other = _manager("other", "nm-2:8041", capacity=yarn(4, 4096))
    plan = plan_node(_node(one, other), ALL, now=NOW)
    assert plan.managers[0].next_value == yarn(10, 32768)
    assert plan.managers[1].next_value == yarn(10, 32768)
    unread = _manager("other", "nm-2:8041", capacity=None, reachable=False, outlives_earlier_leaders=False)
    held = plan_node(_node(one, unread), ALL, now=NOW)
    assert not held.managers[0].sends_update


def test_gives_way_to_a_waiting_pod_unless_applications_wait_too() -> None:
    waits = Demand(kubernetes=batch(2000, 2), yarn_waits=False)
    plan = plan_node(_node(_manager(capacity=yarn(20, 65536)), demand=waits), ALL, now=NOW)
    assert plan.managers[0].target == yarn(1, 1024)


def test_writes_the_claim_again_when_koord_manager_does_not_publish() -> None:
    late = _open(allocatable=batch(500, 0), written_at=NOW - 60)
    plan = plan_node(_node(permissions=late), ALL, now=NOW)
    assert plan.claim_action is ClaimAction.WRITE
    early = plan_node(_node(permissions=replace(late, written_at=NOW - 59)), ALL, now=NOW)
    assert early.claim_action is ClaimAction.KEEP
    assert early.recheck_at == NOW + 1


def test_looks_again_when_the_settle_time_ends() -> None:
    waiting = _open(settle_since=NOW - 4, requested=None)
    assert plan_node(_node(permissions=waiting), ALL, now=NOW).recheck_at == NOW + 6


def test_two_growths_of_one_decision_fit_into_the_claim_together() -> None:
    both = (_manager("one", "nm-1:8041"), _manager("other", "nm-2:8041"))
    plan = plan_node(
        _node(*both, claimed=batch(12000, 40), permissions=_open(allocatable=batch(8000, 24))), ALL, now=NOW
    )
    first, second = (item.next_value for item in plan.managers)
    assert first is not None
    assert second is not None
    assert (first + second).fits_in(yarn(12, 40960))


@pytest.mark.parametrize("sends", [(), (Send(resources=yarn(12, 12288), sent_at=NOW - 3, answered_at=NOW - 3),)])
def test_giving_way_never_sends_a_growth_that_the_mode_withholds(sends: tuple[Send, ...]) -> None:
    back = _manager(capacity=yarn(2, 8192), used=yarn(12, 4096), sends=sends)
    plan = plan_node(_node(back, permissions=_open(settle_since=NOW - 4, requested=None)), ALL, now=NOW).managers[0]
    assert plan.target == yarn(20, 65536)
    assert plan.sends_update  # a deadline may be running at the ResourceManager, and is called off
    assert plan.next_value == yarn(2, 8191)
