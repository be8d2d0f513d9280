# SPDX-License-Identifier: Apache-2.0
"""Containers die only for what has been in excess for the whole grace, after a warning, and a recovery calls it off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from batch_resources.giving_way import (
    NUDGE_LIMIT_MIB,
    Levels,
    Overcommit,
    Situation,
    Stage,
    Stages,
    decide,
    highest_target,
    is_near,
    observe_excess,
    observe_target,
)
from batch_resources.resources import YarnResources
from tests.unit.batch_resources.builders import NOW, yarn

STAGES = Stages(grace_seconds=60, preemption_seconds=30, forced=True, forced_after_seconds=10)
IN_FORCE = Overcommit(value=yarn(8, 8192), is_certain=True)
ARMED = Overcommit(value=yarn(8, 8191), deadline=NOW + 20, is_certain=True)


def situation(**changes: Any) -> Situation:
    """Give a NodeManager that uses 12 vcores of the 8 that it still has, on a node that just came over origin."""
    usual = Situation(
        over_since=NOW,
        used=yarn(12, 12288),
        capacity=yarn(8, 8192),
        lowest=yarn(8, 8192),
        value=yarn(8, 8192),
        level=yarn(8, 8192),
        floor=yarn(1, 1024),
        overcommit=IN_FORCE,
    )
    return replace(usual, **changes)


def armed(**changes: Any) -> Situation:
    """Give the same after the grace, with a deadline that runs."""
    there = yarn(8, 8191)
    running = situation(over_since=NOW - 60, capacity=there, lowest=there, value=there, overcommit=ARMED)
    return replace(running, **changes)


def test_use_that_fits_is_left_to_the_planner() -> None:
    decided = decide(situation(used=yarn(8, 8192)), STAGES, now=NOW + 1000)

    assert decided.stage is Stage.NONE
    assert not decided.needs_update


def test_waits_softly_for_the_whole_grace_and_says_until_when() -> None:
    decided = decide(situation(), STAGES, now=NOW + 59.9)

    assert (decided.stage, decided.deadline, decided.needs_update) == (Stage.SOFT, None, False)
    assert (decided.next_stage, decided.next_at) == (Stage.GRADED, NOW + 60)


def test_sets_a_deadline_after_the_grace_with_one_mib_less() -> None:
    decided = decide(situation(), STAGES, now=NOW + 60)

    assert (decided.stage, decided.value) == (Stage.GRADED, yarn(8, 8191))
    assert decided.deadline == NOW + 90
    assert decided.needs_update
    assert (decided.next_stage, decided.next_at) == (Stage.FORCED, NOW + 100)


def test_a_deadline_that_runs_is_left_alone() -> None:
    decided = decide(armed(), STAGES, now=NOW + 1)

    assert (decided.stage, decided.value, decided.deadline) == (Stage.GRADED, yarn(8, 8191), NOW + 20)
    assert not decided.needs_update


def test_the_same_update_is_not_repeated_while_it_is_under_way() -> None:
    seen = situation(
        over_since=NOW - 60,
        lowest=yarn(8, 8191),
        value=yarn(8, 8191),
        overcommit=replace(ARMED, is_certain=False),
        open_values=(yarn(8, 8191),),
        is_under_way=True,
    )

    assert not decide(seen, STAGES, now=NOW + 1).needs_update


def test_a_lost_update_is_repeated_with_another_value() -> None:
    seen = situation(
        over_since=NOW - 60,
        lowest=yarn(8, 8191),
        overcommit=replace(ARMED, is_certain=False),
        open_values=(yarn(8, 8191),),
    )

    decided = decide(seen, STAGES, now=NOW + 1)

    assert decided.needs_update
    assert decided.value == yarn(8, 8190)
    assert decided.deadline == NOW + 31, "the application masters get the whole time again"


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"over_since": None}, id="recovered, or not known any more"),
        pytest.param({"over_since": NOW}, id="over again, but not for the grace"),
        pytest.param({"level": yarn(9, 9216)}, id="the target was higher during the grace"),
    ],
)
def test_a_deadline_that_is_not_justified_any_more_is_called_off_at_once(changes: dict[str, Any]) -> None:
    decided = decide(armed(**changes), STAGES, now=NOW + 1)

    assert (decided.stage, decided.deadline) == (Stage.SOFT, None)
    assert decided.needs_update
    assert decided.value == yarn(8, 8190), "an unchanged value would leave the deadline"


def test_a_recovered_origin_calls_off_with_the_growth_itself() -> None:
    decided = decide(armed(over_since=None, value=yarn(12, 12288)), STAGES, now=NOW + 1)

    assert decided.needs_update
    assert (decided.value, decided.deadline) == (yarn(12, 12288), None)


def test_a_new_term_calls_off_what_an_earlier_one_may_have_set_and_begins_anew() -> None:
    decided = decide(situation(overcommit=Overcommit()), STAGES, now=NOW + 1)

    assert decided.needs_update
    assert (decided.stage, decided.value, decided.deadline) == (Stage.SOFT, yarn(8, 8191), None)


def test_a_capacity_that_somebody_else_changed_is_not_taken_for_ours() -> None:
    seen = situation(over_since=NOW - 60, capacity=yarn(9, 9216), lowest=yarn(9, 9216), overcommit=ARMED)

    decided = decide(seen, STAGES, now=NOW + 1)

    assert decided.needs_update
    assert (decided.value, decided.deadline) == (yarn(8, 8192), NOW + 31)


def test_a_target_that_moves_while_a_deadline_runs_keeps_the_deadline() -> None:
    decided = decide(armed(value=yarn(9, 9216), level=yarn(9, 9216)), STAGES, now=NOW + 1)

    assert decided.needs_update
    assert (decided.value, decided.deadline) == (yarn(9, 9216), NOW + 20)


def test_the_node_is_asked_when_the_resource_manager_did_not_act() -> None:
    assert decide(armed(), STAGES, now=NOW + 29.9).stage is Stage.GRADED
    assert decide(armed(), STAGES, now=NOW + 30).stage is Stage.FORCED
    assert decide(armed(), replace(STAGES, forced=False), now=NOW + 30).stage is Stage.GRADED


def test_nothing_is_forced_by_a_deadline_that_may_never_have_arrived() -> None:
    lost = armed(overcommit=replace(ARMED, is_certain=False), open_values=(yarn(8, 8191),), is_under_way=True)

    assert decide(lost, STAGES, now=NOW + 500).stage is Stage.GRADED


def test_nothing_dies_where_the_operator_wants_no_killing() -> None:
    decided = decide(situation(over_since=NOW - 9999), replace(STAGES, graded=False), now=NOW)

    assert (decided.stage, decided.next_stage) == (Stage.SOFT, None)


def test_keeps_room_above_the_floor_so_that_a_deadline_can_be_set_there() -> None:
    seen = situation(capacity=yarn(20, 20480), lowest=yarn(20, 20480), value=yarn(1, 1024), level=yarn(1, 1024))

    soft = decide(seen, STAGES, now=NOW + 1)
    assert soft.value == yarn(1, 1024 + NUDGE_LIMIT_MIB)

    there = replace(seen, capacity=soft.value, lowest=soft.value, over_since=NOW - 60)
    left = Overcommit(value=soft.value, is_certain=True)
    graded = decide(replace(there, overcommit=left), STAGES, now=NOW + 1)
    assert graded.value == yarn(1, 1024 + NUDGE_LIMIT_MIB - 1)


def test_at_the_floor_itself_nothing_is_changed() -> None:
    floor = yarn(1, 1024)
    seen = situation(over_since=NOW - 60, capacity=floor, lowest=floor, value=floor, level=floor)

    decided = decide(seen, STAGES, now=NOW)

    assert (decided.stage, decided.needs_update, decided.value) == (Stage.SOFT, False, floor)


def test_a_value_near_its_target_is_not_corrected() -> None:
    assert is_near(yarn(8, 8190), yarn(8, 8192))
    assert not is_near(yarn(8, 8192), yarn(8, 8190))
    assert not is_near(yarn(7, 8192), yarn(8, 8192))


def test_an_excess_begins_anew_after_every_break() -> None:
    since = observe_excess(None, True, now=1)
    assert since == 1
    assert observe_excess(since, True, now=5) == 1
    assert observe_excess(since, False, now=5) is None
    assert observe_excess(since, None, now=5) is None


def test_a_target_counts_until_a_grace_after_it_was_replaced() -> None:
    levels = observe_target((), yarn(9, 9216), now=0, length_seconds=60)
    levels = observe_target(levels, yarn(8, 8192), now=50, length_seconds=60)

    assert highest_target(levels, yarn(8, 8192), now=109, length_seconds=60) == (yarn(9, 9216), 110)
    assert highest_target(levels, yarn(8, 8192), now=110, length_seconds=60) == (yarn(8, 8192), None)


STEP = st.tuples(
    st.integers(0, 20),  # target in vcores
    st.booleans(),  # over origin
    st.sampled_from(["landed", "lost", "refused"]),
    st.integers(1, 40),  # seconds until the next step
)


@settings(max_examples=300)
@given(steps=st.lists(STEP, min_size=1, max_size=40), used=st.integers(2, 20))
@example(
    steps=[(0, True, "landed", 29), (0, True, "landed", 31), (0, True, "landed", 30), (2, True, "landed", 1)], used=3
)  # the value changes just when its deadline is over
def test_a_deadline_only_ever_runs_above_what_was_in_excess_for_the_whole_grace(
    steps: list[tuple[int, bool, str, int]], used: int
) -> None:
    """Play a ResourceManager that takes, loses or refuses updates, and look at every deadline that could strike."""
    floor, now, over_since = yarn(1, 1024), NOW, None
    capacity, left = yarn(20, 20480), Overcommit()
    levels: Levels = ()
    targets: list[tuple[float, YarnResources, bool]] = []
    for target_vcores, is_over, fate, seconds in steps:
        target = yarn(max(target_vcores, 1), max(target_vcores, 1) * 1024)
        over_since = observe_excess(over_since, is_over, now=now)
        targets.append((now, target, is_over))
        level, falls_at = highest_target(levels, target, now=now, length_seconds=60)
        seen = situation(
            over_since=over_since, used=yarn(used, used * 1024), capacity=capacity, lowest=capacity, value=target,
            level=level, level_falls_at=falls_at, floor=floor, overcommit=left,
        )  # fmt: skip
        decided = decide(seen, STAGES, now=now)
        levels = observe_target(levels, target, now=now, length_seconds=60) if is_over else ()
        assert decided.value is not None
        assert floor.fits_in(decided.value)
        wants_send = decided.needs_update or (decided.deadline is None and decided.value != capacity)
        if decided.deadline is not None and decided.needs_update:
            assert decided.deadline > now
        if wants_send:
            assert decided.value != capacity, "the ResourceManager would ignore it"
            if fate == "landed":
                capacity = decided.value
                left = Overcommit(value=decided.value, deadline=decided.deadline, is_certain=True)
            elif fate == "lost":
                left = Overcommit(value=decided.value, deadline=decided.deadline)
        if left.deadline is not None and left.is_certain and left.value == capacity:
            assert is_over or wants_send, "a deadline runs on although the node is not over origin any more"
        if wants_send and fate == "landed" and decided.deadline is not None:
            _only_lasting_excess_dies(targets, decided.value, now)
        now += seconds


def _only_lasting_excess_dies(
    targets: list[tuple[float, YarnResources, bool]], value: YarnResources, now: float
) -> None:
    ends = [*(moment for moment, _, _ in targets[1:]), now]
    for (_, target, is_over), end in zip(targets, ends, strict=True):
        if now - end < 60:
            assert is_over
            assert target.vcores <= value.vcores
