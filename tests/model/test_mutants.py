# SPDX-License-Identifier: Apache-2.0
"""Each rule is needed: a bridge without it sells a unit twice in a world where one or two things are late."""

from __future__ import annotations

import pytest

from tests.model import mutants
from tests.model.bridge import Bridge
from tests.model.explorer import Explorer
from tests.model.world import Late, World


@pytest.mark.parametrize(
    ("mutant", "late"),
    [
        pytest.param(mutants.TrustsThePodView, [], id="the pod view is stale"),
        pytest.param(
            mutants.SettlesWhileTheConditionHolds, [Late.WATCH, Late.BIND], id="settled means the condition held"
        ),
        pytest.param(mutants.DoesNotSettle, [Late.SCHEDULER], id="no settle time, stale scheduler"),
        pytest.param(mutants.DoesNotSettle, [Late.BIND], id="no settle time, slow binds"),
        pytest.param(mutants.FallsWithoutAFreshRead, [Late.ORIGIN, Late.HEARTBEAT], id="unread fall over a failover"),
        pytest.param(mutants.FallsWithoutAFreshRead, [Late.ORIGIN, Late.DOUBLE], id="unread fall, doubled message"),
        pytest.param(mutants.OverlooksGaps, [Late.WATCH, Late.BIND, Late.ORIGIN], id="a gap is no fall"),
        pytest.param(
            mutants.JudgesByTheLastCapacitySeen, [Late.ORIGIN, Late.WATCH], id="shrink judged by the last capacity seen"
        ),
        pytest.param(mutants.TestsTheTextAlone, [Late.PATCH], id="a late patch whose text test passes"),
        pytest.param(
            mutants.GrowsWithoutAWriteOfItsTerm, [Late.PATCH, Late.CRASH], id="no write of this term before a growth"
        ),
        pytest.param(mutants.GrowsWithAPatchOutstanding, [Late.PATCH], id="growth with a patch outstanding"),
        pytest.param(mutants.ConfirmsByANewerValue, [Late.MESSAGE], id="a newer value confirms the older"),
        pytest.param(mutants.ForgetsConfirmedUpdates, [Late.DOUBLE], id="confirmed is dead, doubled message"),
        pytest.param(mutants.ForgetsConfirmedUpdates, [Late.ALLOCATION], id="confirmed is dead, slow scheduler"),
        pytest.param(mutants.GrowsToUseByAnOldRead, [Late.ORIGIN, Late.READ], id="lifetime over before the next read"),
        pytest.param(
            mutants.ActsAtOnceAfterATakeover, [Late.MESSAGE, Late.CRASH], id="acts before older messages died"
        ),
        pytest.param(mutants.BelievesOneRead, [Late.ZERO], id="one read of a momentary zero"),
        pytest.param(mutants.BelievesTheFirstRead, [Late.ZERO, Late.CRASH], id="the first read after a restart"),
        pytest.param(mutants.TrustsTheNodeList, [Late.ALLOCATION], id="the node list taken for the scheduler"),
        pytest.param(mutants.TakesAHeartbeatForItsAnswer, [Late.ANSWER], id="a heartbeat taken for its answer"),
        pytest.param(mutants.TakesAPollForAHeartbeat, [Late.HEARTBEAT], id="a poll taken for a heartbeat"),
        pytest.param(mutants.GrowsBeforeItClaims, [], id="claim after growth"),
        pytest.param(mutants.ReadsUnknownUseAsZero, [Late.CRASH], id="unknown use read as zero"),
        pytest.param(mutants.TakesATimeoutForAFailure, [Late.MESSAGE, Late.LOSS], id="a timeout taken for a failure"),
    ],
)
def test_a_bridge_without_the_rule_is_caught(mutant: type[Bridge], late: list[Late]) -> None:
    world = World(late=frozenset(late))
    assert not Explorer(world).run().violation
    result = Explorer(world, mutant()).run(with_history=True)
    print(f"{mutant.__name__}: {result.sentence()}, {len(result.history) - 1} steps")
    assert result.violation
    assert len(result.history) > 1


def test_a_floor_that_is_not_claimed_is_caught() -> None:
    world = World(late=frozenset({Late.RESTART}), floor=1)
    assert Explorer(world, mutants.ForgetsTheFloor(floor=1)).run().violation


def test_binds_that_outlive_the_settle_time_need_a_reserve() -> None:
    world = World(late=frozenset({Late.BIND}), binds_outlive_settling=True)
    assert Explorer(world).run().violation


def test_another_cluster_that_was_not_read_is_not_overlooked() -> None:
    world = World(late=frozenset({Late.CRASH}), managers=2, most_sends=1, most_messages=1)
    assert Explorer(world, mutants.OverlooksTheOtherCluster()).run().violation
