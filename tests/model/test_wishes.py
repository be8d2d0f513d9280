# SPDX-License-Identifier: Apache-2.0
"""What demand, minimums, and doubt about a dip may ask for is within what the search lets the bridge do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from batch_resources.planner.boundary import Shares, split
from batch_resources.planner.strict_amounts import ManagerAmounts, NodeAmounts
from batch_resources.planner.strict_rules import decide
from tests.model.bridge import Bridge, YarnPart
from tests.model.explorer import Explorer
from tests.model.world import World

UNITS = 2


def _managers(goal: int) -> Iterator[ManagerAmounts]:
    units = range(UNITS + 1)
    for capacity, used, floor, proven in itertools.product(units, units, (0, 1), (None, 0, 1, 2)):
        for unconfirmed in ((), (0,), (1,), (2,)):
            yield ManagerAmounts(
                capacity=capacity, used=used, floor=floor, proven=proven, unconfirmed=unconfirmed, goal=goal
            )


def test_doubt_of_an_origin_does_nothing_that_a_known_one_could_not() -> None:
    """A dip that is not believed yet takes a known origin for unknown; the search knows that as another goal."""
    checked = 0
    for claimed, origin in itertools.product(range(UNITS + 1), range(UNITS + 1)):
        for manager in _managers(goal=0):
            doubted = NodeAmounts(origin=None, claimed=claimed, allocatable=0, managers=(manager,))
            decision = decide(doubted)
            value = decision.capacities[0]
            assert value is not None
            known = [
                decide(
                    NodeAmounts(
                        origin=origin,
                        claimed=claimed,
                        allocatable=0,
                        managers=(_with_goal(manager, goal),),
                    )
                )
                for goal in range(UNITS + 1)
            ]
            # Below the floor nothing is asked for, so a fall to less than that is the same as none.
            assert any(answer.capacities[0] == value for answer in known) or value < manager.floor
            assert decision.claim == claimed or any(answer.claim == decision.claim for answer in known)
            checked += 1
    assert checked == 3 * 3 * 288


def _with_goal(manager: ManagerAmounts, goal: int) -> ManagerAmounts:
    return ManagerAmounts(
        capacity=manager.capacity,
        used=manager.used,
        floor=manager.floor,
        proven=manager.proven,
        unconfirmed=manager.unconfirmed,
        goal=goal,
    )


class _Listening(Bridge):
    """Note every goal that the search asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.goals: set[int] = set()

    def manager(self, part: YarnPart, goal: int) -> ManagerAmounts:
        """Note the goal."""
        self.goals.add(goal)
        return super().manager(part, goal)


def test_the_search_lets_every_goal_come_at_any_moment() -> None:
    bridge = _Listening()
    assert not Explorer(World(units=UNITS), bridge).run().violation
    assert bridge.goals == set(range(UNITS + 1))


def test_every_wish_of_the_boundary_is_one_of_these_goals() -> None:
    units = range(UNITS + 1)
    for budget, used, claimed, allocatable in itertools.product(units, units, units, units):
        for pods, yarn, weights in itertools.product(range(4), (True, False, None), ((1, 1), (0, 1), (1, 0))):
            for minimums in itertools.product(units, units):
                wish = split(
                    Shares(
                        budget=budget,
                        used=used,
                        claimed=claimed,
                        allocatable=allocatable,
                        kubernetes_waits=pods,
                        yarn_waits=yarn,
                        yarn_weight=weights[0],
                        kubernetes_weight=weights[1],
                        kubernetes_minimum=minimums[0],
                        yarn_minimum=minimums[1],
                    )
                )
                assert 0 <= wish.yarn <= budget
