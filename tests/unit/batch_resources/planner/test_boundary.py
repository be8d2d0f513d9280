# SPDX-License-Identifier: Apache-2.0
"""Where the boundary goes: who gets what is free, minimums, steps that are published at once, and no swinging."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from batch_resources.planner.boundary import Shares, Split, Why, split
from batch_resources.planner.standing import Standing, may_go_back_at, stand

NOW = 1000.0
WINDOW = 60.0


def _split(**changes: Any) -> Split:
    """Split 100 of which YARN uses 20; allocatable is nothing, so every step is large enough."""
    return split(Shares(**{"budget": 100, "used": 20, "claimed": 0, "allocatable": 0, **changes}))


@pytest.mark.parametrize(
    ("kubernetes", "yarn", "expected"),
    [
        pytest.param(0, False, Split(60, Why.NOBODY_WAITS), id="nobody"),
        pytest.param(0, None, Split(60, Why.DEMAND_UNKNOWN), id="unknown"),
        pytest.param(0, True, Split(100, Why.YARN_WAITS), id="YARN alone"),
        pytest.param(10, False, Split(20, Why.KUBERNETES_WAITS), id="Kubernetes alone"),
        pytest.param(10, True, Split(60, Why.BOTH_WAIT), id="both"),
        pytest.param(10, None, Split(60, Why.DEMAND_UNKNOWN), id="Kubernetes, and YARN is unknown"),
        pytest.param(70, True, Split(30, Why.PODS_NEED_MORE), id="a pod larger than Kubernetes' share"),
        pytest.param(70, None, Split(30, Why.PODS_NEED_MORE), id="a large pod, and YARN is unknown"),
        pytest.param(200, True, Split(20, Why.PODS_NEED_MORE), id="more than there is"),
    ],
)
def test_demand_says_who_gets_what_is_free(kubernetes: int, yarn: bool | None, expected: Split) -> None:
    assert _split(kubernetes_waits=kubernetes, yarn_waits=yarn) == expected


@pytest.mark.parametrize(("weights", "part"), [((1, 0), 80), ((3, 1), 60), ((0, 1), 0), ((1, 3), 20)])
def test_weights_divide_what_is_free(weights: tuple[int, int], part: int) -> None:
    assert _split(yarn_waits=False, yarn_weight=weights[0], kubernetes_weight=weights[1]).yarn == 20 + part


@pytest.mark.parametrize(
    ("changes", "yarn"),
    [
        pytest.param({"yarn_waits": True, "kubernetes_minimum": 15}, 85, id="Kubernetes keeps its minimum"),
        pytest.param({"kubernetes_waits": 9, "yarn_waits": False, "yarn_minimum": 50}, 50, id="YARN keeps its minimum"),
        pytest.param({"kubernetes_waits": 9, "yarn_waits": False, "yarn_minimum": 10}, 20, id="use is more than it"),
        pytest.param(
            {"kubernetes_waits": 9, "yarn_waits": False, "yarn_minimum": 99, "kubernetes_minimum": 30},
            70,
            id="Kubernetes' minimum goes before YARN's",
        ),
        pytest.param({"yarn_waits": True, "kubernetes_minimum": 500}, 20, id="a minimum above all that is free"),
        pytest.param({"kubernetes_waits": 90, "reserve": 30, "yarn_waits": True}, 40, id="the reserve serves pods"),
    ],
)
def test_minimums_bound_the_part(changes: dict[str, Any], yarn: int) -> None:
    assert _split(**changes).yarn == yarn


@pytest.mark.parametrize("budget", [20, 10, 0, -5])
def test_with_nothing_free_the_budget_is_the_goal(budget: int) -> None:
    assert _split(budget=budget, yarn_waits=True) == Split(max(budget, 0), Why.NOTHING_FREE)


@pytest.mark.parametrize(
    ("kubernetes", "yarn", "weights", "minimums"),
    list(itertools.product((0, 1, 40, 500), (True, False, None), ((1, 1), (0, 1), (5, 0)), ((0, 0), (30, 90)))),
)
def test_no_part_is_outside_of_use_and_budget(
    kubernetes: int, yarn: bool | None, weights: tuple[int, int], minimums: tuple[int, int]
) -> None:
    for claimed, allocatable in itertools.product((0, 20, 55, 100, 140), (0, 50, 1000)):
        part = _split(
            kubernetes_waits=kubernetes,
            yarn_waits=yarn,
            yarn_weight=weights[0],
            kubernetes_weight=weights[1],
            kubernetes_minimum=minimums[0],
            yarn_minimum=minimums[1],
            claimed=claimed,
            allocatable=allocatable,
        ).yarn
        assert 20 <= part <= 100


def test_a_small_step_towards_pods_is_made_large_enough_to_be_published() -> None:
    small = {"claimed": 65, "allocatable": 200, "kubernetes_waits": 10, "yarn_waits": True}
    assert _split(**small) == Split(44, Why.LARGER_STEP)
    assert _split(**{**small, "claimed": 25, "kubernetes_waits": 79}) == Split(20, Why.LARGER_STEP)
    assert _split(**{**small, "claimed": 90}) == Split(60, Why.BOTH_WAIT)


def test_a_larger_step_is_not_taken_back_while_pods_wait() -> None:
    assert _split(claimed=44, allocatable=200, kubernetes_waits=10, yarn_waits=True) == Split(44, Why.SMALL_STEP)


def test_a_small_step_is_worth_nothing_where_nobody_waits() -> None:
    assert _split(claimed=65, allocatable=200, yarn_waits=False) == Split(65, Why.SMALL_STEP)
    assert _split(claimed=55, allocatable=200, yarn_waits=False) == Split(60, Why.NOBODY_WAITS)


NOBODY, YARN = (0, False), (0, True)


def _stand(before: Standing | None, wish: int, demand: tuple[int, bool | None] = NOBODY, *, now: float) -> Standing:
    return stand(before, wish, demand=demand, window_seconds=WINDOW, now=now)


def test_a_boundary_goes_on_in_its_direction_at_once() -> None:
    standing = _stand(_stand(_stand(None, 10, now=NOW), 20, now=NOW + 1), 30, now=NOW + 2)
    assert (standing.yarn, standing.towards, standing.moved_at) == (30, 1, NOW + 2)


@pytest.mark.parametrize(("first", "back"), [(20, 15), (5, 8)])
def test_a_boundary_does_not_go_back_within_the_window(first: int, back: int) -> None:
    moved = _stand(_stand(None, 10, now=NOW), first, now=NOW + 1)
    assert _stand(moved, back, now=NOW + 60.9) == moved
    assert may_go_back_at(moved, back, WINDOW) == NOW + 61
    assert _stand(moved, back, now=NOW + 61).yarn == back


def test_a_boundary_goes_back_at_once_when_demand_has_changed() -> None:
    moved = _stand(_stand(None, 10, now=NOW), 20, YARN, now=NOW + 1)
    assert _stand(moved, 15, NOBODY, now=NOW + 2).yarn == 15


def test_demand_that_moves_nothing_counts_as_known() -> None:
    moved = _stand(_stand(None, 10, now=NOW), 20, YARN, now=NOW + 1)
    same = _stand(moved, 20, NOBODY, now=NOW + 2)
    assert _stand(same, 15, NOBODY, now=NOW + 3).yarn == 20


def test_use_that_goes_up_and_down_moves_a_boundary_once_in_a_window() -> None:
    standing, moves = None, 0
    for second in range(600):
        after = _stand(standing, 50 + second % 2, now=NOW + second)
        moves += standing is not None and after.yarn != standing.yarn
        standing = after
    assert moves <= 2 * 600 / WINDOW
