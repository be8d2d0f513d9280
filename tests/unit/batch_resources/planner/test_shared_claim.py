# SPDX-License-Identifier: Apache-2.0
"""Test what Koordinator is told in mode shared."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from batch_resources.annotations.origin import OriginState
from batch_resources.ledger import ClaimAction, Hold, NodeObservation
from batch_resources.planner.shared import plan_node
from batch_resources.resources import BatchResources
from tests.unit.batch_resources.builders import NOW, POLICY, batch, manager, node, unknown_origin, yarn


def without_managers(claimed: BatchResources | None, *, proven: bool) -> NodeObservation:
    return replace(node(), managers=(), claimed=claimed, release_is_proven=proven)


def test_use_is_claimed_in_koordinators_units() -> None:
    observed = node(batch(60646, 240), manager(used=yarn(60, 234581), capacity=yarn(60, 234581)))
    plan = plan_node(observed, POLICY, now=NOW)
    assert plan.claim == BatchResources(cpu_milli=60000, memory_bytes=245976006656)
    assert plan.claim_action is ClaimAction.WRITE


def test_the_floor_is_claimed_when_nothing_runs() -> None:
    plan = plan_node(node(), POLICY, now=NOW)
    assert plan.claim == batch(1000, 1)


def test_the_floor_is_claimed_before_the_node_manager_registers() -> None:
    waiting = manager(node_id="", capacity=None, used=None, used_is_proven=False)
    plan = plan_node(node(batch(20000, 64), waiting), POLICY, now=NOW)
    assert plan.claim == batch(1000, 1)
    assert plan.claim_action is ClaimAction.WRITE


def test_an_equal_claim_is_not_written() -> None:
    plan = plan_node(node(batch(20000, 64), manager(used=yarn(4, 4096)), claimed=batch(4000, 4)), POLICY, now=NOW)
    assert plan.claim_action is ClaimAction.KEEP


def test_a_proven_fall_is_written() -> None:
    plan = plan_node(node(batch(20000, 64), manager(used=yarn(4, 4096)), claimed=batch(9000, 9)), POLICY, now=NOW)
    assert plan.claim == batch(4000, 4)
    assert plan.claim_action is ClaimAction.WRITE


def test_after_a_restart_the_claim_found_is_the_baseline() -> None:
    fresh = manager(used=yarn(0, 0), used_is_proven=False)
    plan = plan_node(node(batch(20000, 64), fresh, claimed=batch(9000, 9)), POLICY, now=NOW)
    assert plan.claim == batch(9000, 9)
    assert plan.claim_action is ClaimAction.KEEP
    assert Hold.FALL_OF_USE_UNPROVEN in plan.holds


def test_an_unproven_use_still_raises_each_resource() -> None:
    fresh = manager(used=yarn(12, 2048), used_is_proven=False)
    plan = plan_node(node(batch(20000, 64), fresh, claimed=batch(9000, 9)), POLICY, now=NOW)
    assert plan.claim == batch(12000, 9)
    assert plan.claim_action is ClaimAction.WRITE


def test_one_unread_cluster_keeps_the_whole_claim_up() -> None:
    observed = node(
        batch(20000, 64),
        manager("a", used=yarn(1, 1024)),
        manager("b", "x:1", reachable=False, used=None, used_is_proven=False, capacity=None),
        claimed=batch(9000, 9),
    )
    assert plan_node(observed, POLICY, now=NOW).claim == batch(9000, 9)


def test_an_unknown_origin_does_not_touch_the_claim_of_what_runs() -> None:
    observed = node(
        None, manager(used=yarn(4, 4096)), claimed=batch(4000, 4), origin=unknown_origin(OriginState.DEGRADED)
    )
    plan = plan_node(observed, POLICY, now=NOW)
    assert plan.claim == batch(4000, 4)
    assert plan.claim_action is ClaimAction.KEEP


def test_an_annotation_that_cannot_be_read_is_not_written() -> None:
    plan = plan_node(node(None, manager(used=yarn(4, 4096)), others=None), POLICY, now=NOW)
    assert plan.claim_action is ClaimAction.KEEP


def test_a_foreign_entry_is_not_written() -> None:
    observed = node(None, manager(used=yarn(4, 4096)), claimed=batch(7000, 7), claim_is_foreign=True)
    plan = plan_node(observed, POLICY, now=NOW)
    assert plan.claim_action is ClaimAction.KEEP
    assert Hold.FOREIGN_WRITER in plan.holds


@pytest.mark.parametrize(
    ("claimed", "proven", "action"),
    [
        pytest.param(None, True, ClaimAction.KEEP, id="no-entry"),
        pytest.param(batch(4000, 4), True, ClaimAction.REMOVE, id="entry-and-proof"),
        pytest.param(batch(4000, 4), False, ClaimAction.KEEP, id="entry-without-proof"),
    ],
)
def test_the_entry_goes_only_with_proof(claimed: BatchResources | None, proven: bool, action: ClaimAction) -> None:
    plan = plan_node(without_managers(claimed, proven=proven), POLICY, now=NOW)
    assert plan.claim_action is action
    assert (Hold.FALL_OF_USE_UNPROVEN in plan.holds) == (claimed is not None and not proven)


def test_a_claim_found_below_what_is_wanted_is_raised_without_proof() -> None:
    fresh = manager(used=yarn(12, 12288), used_is_proven=False)
    plan = plan_node(node(batch(20000, 64), fresh, claimed=batch(9000, 9)), POLICY, now=NOW)
    assert plan.claim == batch(12000, 12)
    assert Hold.FALL_OF_USE_UNPROVEN not in plan.holds
