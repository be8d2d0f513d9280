# SPDX-License-Identifier: Apache-2.0
"""Test who dies when room is needed."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.victims import Candidate, ExecutionType, choose_victims, kill_order, total

GIB = 1 << 30
NOW = 100_000.0
HOUR = 3600.0


def ask(cores: float, gib: float = 0) -> BatchResources:
    return BatchResources(cpu_milli=int(cores * 1000), memory_bytes=int(gib * GIB))


def task(
    name: str,
    cores: float,
    age: float | None,
    *,
    gib: float = 0,
    master: bool = False,
    opportunistic: bool = False,
    of: tuple[str, int] = ("", 0),
) -> Candidate:
    return Candidate(
        container_id=name,
        holds=ask(cores, gib),
        started_at=None if age is None else NOW - age,
        application_id=of[0],
        turn=of[1:],
        is_application_master=master,
        execution_type=ExecutionType.OPPORTUNISTIC if opportunistic else ExecutionType.GUARANTEED,
    )


A = task("a", 1, 2 * HOUR, master=True)
B = task("b", 4, HOUR)
C = task("c", 4, 300)
D = task("d", 4, 60)
OLD_OPPORTUNISTIC = task("o", 4, 10 * HOUR, opportunistic=True)


@pytest.mark.parametrize(
    ("candidates", "asked", "victims"),
    [
        pytest.param([A, B, C, D], ask(3), "d", id="three cores over: the youngest task alone"),
        pytest.param([A, B, C, D], ask(4), "d", id="exactly one task"),
        pytest.param([A, B, C, D], ask(4.001), "dc", id="a thousandth more needs the next one"),
        pytest.param([A, B, C, D], ask(12), "dcb", id="everything but the master"),
        pytest.param([A, B, C, D], ask(12.5), "dcba", id="the master when all others are not enough"),
        pytest.param([A, B, C, D], ask(13), "dcba", id="everything"),
        pytest.param([A, B, C, D], ask(99), "dcba", id="more than there is: all that there is"),
        pytest.param([A, B, C, D], ask(0), "", id="nothing asked"),
        pytest.param([], ask(4), "", id="nobody there"),
        pytest.param([A], ask(1), "a", id="a master that is alone"),
        pytest.param([A, B], ask(1), "b", id="a large task dies before a small master"),
        pytest.param([D, OLD_OPPORTUNISTIC], ask(1), "o", id="an old opportunistic one before a young promised one"),
        pytest.param([D, OLD_OPPORTUNISTIC], ask(5), "od", id="opportunistic first, then promised"),
        pytest.param(
            [task("m", 1, 5, master=True, opportunistic=True), B], ask(1), "b", id="an opportunistic master is a master"
        ),
        pytest.param(
            [task("x", 1, 10, opportunistic=True), task("y", 1, 20, opportunistic=True)],
            ask(1),
            "x",
            id="the youngest of the opportunistic",
        ),
        pytest.param([task("x", 1, 10), task("y", 4, 20)], ask(4), "y", id="a small young one is spared if useless"),
        pytest.param([task("x", 1, 10), task("y", 4, 20)], ask(5), "xy", id="a small young one that is needed"),
        pytest.param([task("x", 3, 10), task("y", 1, 20), task("z", 4, 30)], ask(4), "xy", id="order before number"),
        pytest.param([task("m1", 1, 10, master=True), task("m2", 1, 20, master=True)], ask(1), "m1", id="young master"),
        pytest.param(
            [task("m", 4, 9, master=True), task("x", 1, 5), task("y", 1, 6)], ask(4), "m", id="no needless companions"
        ),
        pytest.param([task("x", 0, 5, gib=8), D], ask(2), "d", id="memory alone does not free cores"),
        pytest.param([task("x", 0, 5, gib=8), D], ask(0, 4), "x", id="cores alone do not free memory"),
        pytest.param(
            [task("x", 1, 5, gib=1), task("y", 1, 6, gib=8)], ask(1, 8), "y", id="one that frees both, the other spared"
        ),
        pytest.param([task("x", 2, 5), task("y", 0, 6, gib=8)], ask(1, 8), "xy", id="one for each resource"),
        pytest.param([task("x", 2, 5), task("y", 0, 6, gib=8)], ask(1, 99), "xy", id="one resource cannot be met"),
        pytest.param(
            [task("x", 2, 5), task("y", 3, 6)], ask(2, 99), "x", id="unmet memory kills nobody without memory"
        ),
        pytest.param([task("x", 1, None), task("y", 1, 5)], ask(1), "y", id="an unknown start counts as oldest"),
        pytest.param([task("x_01", 1, 5), task("x_02", 1, 5)], ask(1), "x_02", id="equally young: the later number"),
        pytest.param([task("x", 0, 5), task("y", 1, 6)], ask(1), "y", id="one that holds nothing is left alone"),
    ],
)
def test_chooses(candidates: list[Candidate], asked: BatchResources, victims: str) -> None:
    by_name = {candidate.container_id: candidate for candidate in candidates}
    expected = [by_name[victims]] if victims in by_name else [by_name[name] for name in _names(victims)]
    choice = choose_victims(candidates, asked)
    assert list(choice.victims) == expected
    assert choice.freed == total(expected)


@pytest.mark.parametrize(
    ("candidates", "order"),
    [
        pytest.param(
            [task("x", 1, 10, of=("1", 2)), task("y", 1, 90, of=("1", 3))], "yx", id="allocated last, started first"
        ),
        pytest.param(
            [task("x", 1, 10, of=("1", 2)), task("y", 1, 90, of=("1", 3)), task("z", 1, 50, of=("2", 2))],
            "zyx",
            id="the early start of a later one dates an earlier one",
        ),
        pytest.param(
            [task("x", 1, None, of=("1", 2)), task("y", 1, 20, of=("1", 3)), task("z", 1, 30, of=("2", 2))],
            "yxz",
            id="one without a start is dated by a later one",
        ),
        pytest.param(
            [task("x", 1, 20, of=("1", 2)), task("y", 1, None, of=("1", 3)), task("z", 1, 10, of=("2", 2))],
            "zyx",
            id="one without a start is younger than an earlier one",
        ),
        pytest.param(
            [task("x", 1, None, of=("1", 2)), task("y", 1, None, of=("1", 3)), task("z", 1, 10, of=("2", 2))],
            "zyx",
            id="an application without any start counts as oldest",
        ),
        pytest.param(
            [task("x", 1, 10, of=("1", 9)), task("y", 1, 20, of=("2", 10))], "xy", id="numbers of two applications"
        ),
        pytest.param(
            [task("x", 1, 10, of=("1", 3)), task("y", 1, 90, of=("1", 2), opportunistic=True)],
            "yx",
            id="opportunistic before the order of allocation",
        ),
        pytest.param(
            [task("x", 1, 10, of=("1", 1), master=True), task("y", 1, 90, of=("1", 2))], "yx", id="the master last"
        ),
    ],
)
def test_of_one_application_the_last_allocated_dies_first(candidates: list[Candidate], order: str) -> None:
    assert [one.container_id for one in kill_order(candidates)] == list(order)


def _names(text: str) -> list[str]:
    return list(text)


def test_the_published_case_leaves_nine_of_thirteen_cores() -> None:
    choice = choose_victims([A, B, C, D], ask(13 - 10))
    assert [victim.container_id for victim in choice.victims] == ["d"]
    assert choice.is_sufficient
    assert ask(13) - choice.freed == ask(9)


def test_says_what_cannot_be_freed() -> None:
    choice = choose_victims([A, B], ask(7, 1))
    assert not choice.is_sufficient
    assert choice.missing == ask(2, 1)


@pytest.mark.parametrize("asked", [ask(-1), ask(0, -1), ask(1, -1)])
def test_refuses_a_negative_ask(asked: BatchResources) -> None:
    with pytest.raises(ValueError, match="negative"):
        choose_victims([A], asked)


amounts = st.builds(
    BatchResources,
    cpu_milli=st.integers(0, 8).map(lambda n: n * 500),
    memory_bytes=st.integers(0, 6).map(lambda n: n * GIB),
)
candidates_of_a_node = st.lists(
    st.builds(
        Candidate,
        container_id=st.uuids().map(str),
        holds=amounts,
        started_at=st.none() | st.integers(0, 5).map(float),
        application_id=st.sampled_from(["", "1", "2"]),
        turn=st.tuples(st.integers(0, 5)),
        is_application_master=st.booleans(),
        execution_type=st.sampled_from(ExecutionType),
    ),
    max_size=8,
    unique_by=lambda candidate: candidate.container_id,
)


@given(candidates_of_a_node, amounts)
def test_frees_at_least_what_is_asked_whenever_that_is_possible(
    candidates: list[Candidate], asked: BatchResources
) -> None:
    choice = choose_victims(candidates, asked)
    possible = asked.at_most(total(candidates))
    assert possible.fits_in(choice.freed)
    assert choice.missing == asked - possible
    assert choice.freed == total(choice.victims)
    assert set(choice.victims) <= set(candidates)


@given(candidates_of_a_node, amounts)
def test_no_proper_subset_would_do(candidates: list[Candidate], asked: BatchResources) -> None:
    choice = choose_victims(candidates, asked)
    possible = asked.at_most(total(candidates))
    for size in range(len(choice.victims)):
        for subset in combinations(choice.victims, size):
            assert not possible.fits_in(total(subset))


@given(candidates_of_a_node, amounts)
def test_no_master_dies_while_the_others_are_enough(candidates: list[Candidate], asked: BatchResources) -> None:
    others = [candidate for candidate in candidates if not candidate.is_application_master]
    choice = choose_victims(candidates, asked)
    if asked.at_most(total(candidates)).fits_in(total(others)):
        assert not any(victim.is_application_master for victim in choice.victims)


@given(candidates_of_a_node, amounts)
def test_no_promised_task_dies_while_opportunistic_ones_are_enough(
    candidates: list[Candidate], asked: BatchResources
) -> None:
    cheap = [
        candidate
        for candidate in candidates
        if candidate.execution_type is ExecutionType.OPPORTUNISTIC and not candidate.is_application_master
    ]
    choice = choose_victims(candidates, asked)
    if asked.at_most(total(candidates)).fits_in(total(cheap)):
        assert set(choice.victims) <= set(cheap)


@given(candidates_of_a_node, amounts)
def test_an_older_equal_task_never_dies_instead_of_a_younger_one(
    candidates: list[Candidate], asked: BatchResources
) -> None:
    victims = set(choose_victims(candidates, asked).victims)
    order = kill_order(candidates)
    for first, second in combinations(order, 2):
        if second in victims and first not in victims:
            assert not _could_replace(first, second)


def _could_replace(younger: Candidate, older: Candidate) -> bool:
    """Tell whether the two are alike in everything but age."""
    return (
        younger.holds == older.holds != ZERO_BATCH
        and younger.is_application_master == older.is_application_master
        and younger.execution_type == older.execution_type
    )


@given(candidates_of_a_node)
def test_alike_tasks_of_one_application_die_against_the_order_of_allocation(candidates: list[Candidate]) -> None:
    for first, second in combinations(kill_order(candidates), 2):
        are_alike = (first.is_application_master, first.execution_type) == (
            second.is_application_master, second.execution_type
        )  # fmt: skip
        if are_alike and first.application_id == second.application_id != "":
            assert first.turn >= second.turn


@given(candidates_of_a_node, amounts)
def test_the_choice_does_not_depend_on_the_order_of_the_list(
    candidates: list[Candidate], asked: BatchResources
) -> None:
    assert choose_victims(candidates, asked) == choose_victims(list(reversed(candidates)), asked)
