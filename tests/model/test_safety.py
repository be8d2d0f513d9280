# SPDX-License-Identifier: Apache-2.0
"""No unit is sold twice, whatever single thing or pair of things is late.

Every world is searched to its end. The figures are printed at the end of the run (`pytest -rP` shows them).
"""

from __future__ import annotations

import pytest

from tests.model.explorer import Explorer
from tests.model.world import Late, World


def _search(world: World) -> int:
    result = Explorer(world).run()
    if result.violation:
        told = Explorer(world).run(with_history=True)
        pytest.fail(f"{result.sentence()}\n" + "\n".join(told.history))
    assert result.is_complete
    names = " and ".join(sorted(world.late)) or "nothing"
    print(f"{names} late, {world.managers} NodeManagers, floor {world.floor}: {result.sentence()}")
    return result.states


def test_nothing_is_sold_twice_when_nothing_is_late() -> None:
    assert _search(World()) > 1000


@pytest.mark.parametrize("late", list(Late))
def test_nothing_is_sold_twice_when_one_thing_is_late(late: Late) -> None:
    assert _search(World(late=frozenset({late}))) > 1000


@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", list(Late)[:-1])
def test_nothing_is_sold_twice_when_two_things_are_late(first: Late) -> None:
    """One test for each first kind, with every later kind beside it."""
    kinds = list(Late)
    total = sum(_search(World(late=frozenset({first, second}))) for second in kinds[kinds.index(first) + 1 :])
    print(f"{first} with each of the kinds after it: {total:,} states")


@pytest.mark.parametrize("late", [Late.RESTART, Late.ORIGIN, Late.HEARTBEAT, Late.CRASH, Late.MESSAGE])
def test_nothing_is_sold_twice_with_a_floor_that_is_always_claimed(late: Late) -> None:
    assert _search(World(late=frozenset({late, Late.RESTART}), floor=1)) > 500


@pytest.mark.parametrize("late", [None, Late.CRASH, Late.RESTART, Late.ORIGIN, Late.MESSAGE])
def test_nothing_is_sold_twice_by_two_clusters_on_one_node(late: Late | None) -> None:
    kinds = frozenset() if late is None else frozenset({late})
    assert _search(World(late=kinds, managers=2, most_sends=1, most_messages=1)) > 5000


@pytest.mark.parametrize("late", [Late.BIND, Late.CRASH, Late.WATCH])
def test_reserve_covers_binds_that_outlive_the_settle_time(late: Late) -> None:
    world = World(late=frozenset({late, Late.BIND}), units=3, reserve=2, binds_outlive_settling=True)
    assert _search(world) > 1000


@pytest.mark.parametrize("late", [Late.ORIGIN, Late.PUBLICATION, Late.CRASH])
def test_nothing_is_sold_twice_in_a_larger_world(late: Late) -> None:
    assert _search(World(late=frozenset({late}), units=3)) > 5000
