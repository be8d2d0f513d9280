# SPDX-License-Identifier: Apache-2.0
"""Nothing waits for ever: from every state a calm path leads to where the boundary is wanted."""

from __future__ import annotations

import pytest

from tests.model import mutants
from tests.model.bridge import Bridge
from tests.model.explorer import Explorer
from tests.model.liveness import CalmWorld, Liveness, Wish
from tests.model.world import Late, World


def _judge(world: World, wish: Wish, bridge: Bridge | None = None) -> Liveness:
    explorer = Explorer(world, bridge)
    assert explorer.run().is_complete
    verdict = CalmWorld(explorer, explorer.seen, wish).judge()
    print(f"{wish}: {verdict.pairs:,} pairs of states, {verdict.stuck} stuck")
    return verdict


@pytest.mark.parametrize("wish", list(Wish))
@pytest.mark.parametrize("late", list(Late))
def test_no_state_is_stuck_when_one_thing_is_late(late: Late, wish: Wish) -> None:
    verdict = _judge(World(late=frozenset({late})), wish)
    assert verdict.stuck == 0, verdict.example


@pytest.mark.parametrize("wish", list(Wish))
@pytest.mark.parametrize(
    "world",
    [
        pytest.param(World(late=frozenset({Late.ORIGIN, Late.RESTART}), floor=1), id="floor"),
        pytest.param(World(late=frozenset({Late.ORIGIN}), units=3, reserve=1), id="reserve"),
        pytest.param(World(late=frozenset({Late.PATCH, Late.CRASH})), id="lost patches and crashes"),
        pytest.param(World(late=frozenset({Late.MESSAGE, Late.LOSS})), id="lost updates"),
        pytest.param(World(managers=2, most_sends=1, most_messages=1), id="two clusters"),
    ],
)
def test_no_state_is_stuck_in_other_worlds(world: World, wish: Wish) -> None:
    verdict = _judge(world, wish)
    assert verdict.stuck == 0, verdict.example


@pytest.mark.parametrize("wish", list(Wish))
def test_an_equal_claim_written_again_ends_the_wait_for_koord_manager(wish: Wish) -> None:
    world = World(late=frozenset({Late.PUBLICATION}), publishes_on_events_only=True)
    assert _judge(world, wish).stuck == 0
    assert _judge(world, wish, mutants.NeverNudges()).stuck > 0
