# SPDX-License-Identifier: Apache-2.0
"""Test what a read of a node list is found to have changed."""

from __future__ import annotations

from msgspec.structs import replace

from tests.unit.controller.outside import FRESH, FakeResourceManager
from yarn_copilot.controller.state.cluster import Changes, ClusterState
from yarn_copilot.hadoop.model import NodeReport, NodeState


def reports() -> list[NodeReport]:
    rm = FakeResourceManager()
    for index in range(3):
        rm.add(f"nm-{index}:8041")
    return list(rm.reports.values())


def take(state: ClusterState, listed: list[NodeReport], at: float = 1.0) -> Changes:
    return state.take(listed, began_at=at, ended_at=at + 0.1)


def test_an_equal_read_changes_nothing() -> None:
    state = ClusterState("a", ["rm:1"])
    assert take(state, reports()).membership
    changes = take(state, reports(), 2.0)
    assert not changes.membership
    assert changes.nodes == frozenset()
    assert state.read_began_at == 2.0
    assert state.age_seconds(5.0) == 3.0


def test_use_and_capability_change_their_node_only() -> None:
    state = ClusterState("a", [])
    listed = reports()
    take(state, listed)
    changes = take(state, [replace(listed[0], used=FRESH), *listed[1:]])
    assert not changes.membership
    assert changes.nodes == {listed[0].node_id}


def test_becoming_inactive_changes_identities_but_becoming_unhealthy_does_not() -> None:
    state = ClusterState("a", [])
    listed = reports()
    take(state, listed)
    unhealthy = take(state, [replace(listed[0], state=NodeState.UNHEALTHY), *listed[1:]])
    assert not unhealthy.membership
    assert unhealthy.nodes == {listed[0].node_id}
    lost = take(state, [replace(listed[0], state=NodeState.LOST), *listed[1:]])
    assert lost.membership
    assert lost.nodes == {listed[0].node_id}


def test_a_node_that_is_listed_no_longer_is_a_change() -> None:
    state = ClusterState("a", [])
    listed = reports()
    take(state, listed)
    changes = take(state, listed[1:])
    assert changes.membership
    assert changes.nodes == {listed[0].node_id}
    assert state.index.named("nm-0") == []


def test_each_series_of_failures_may_bring_another_resource_manager() -> None:
    state = ClusterState("a", [])
    assert not state.reachable
    state.fail("refused", now=0.5)
    take(state, reports())
    assert state.reachable
    assert state.reachable_since == 1.1
    state.fail("refused", now=2.0)
    state.fail("refused again", now=3.0)
    assert (state.reachable, state.has_view, state.failing_since) == (False, True, 2.0)
    assert (state.incarnation, state.error) == (2, "refused again")
    take(state, reports(), 9.0)
    assert state.error == ""
    assert state.reachable_since == 9.1
