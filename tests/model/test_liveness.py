# SPDX-License-Identifier: Apache-2.0
"""Nothing waits for ever: from every state a calm path leads to where the boundary is wanted."""

from __future__ import annotations

import pytest

from tests.model import mutants
from tests.model.bridge import Bridge
from tests.model.explorer import Explorer
from tests.model.liveness import CalmWorld, Liveness, Wish
from tests.model.world import Late, World


def _judge(world: World, bridge: Bridge | None = None) -> dict[Wish, Liveness]:
    """Search a world once and judge it by every wish."""
    explorer = Explorer(world, bridge)
    assert explorer.run().is_complete
    verdicts = {wish: CalmWorld(explorer, explorer.seen, wish).judge() for wish in Wish}
    for wish, verdict in verdicts.items():
        print(f"{wish}: {verdict.pairs:,} pairs of states, {verdict.stuck} stuck")
    return verdicts


def _assert_nothing_is_stuck(world: World) -> None:
    for wish, verdict in _judge(world).items():
        assert verdict.stuck == 0, f"{wish}: {verdict.example}"


@pytest.mark.parametrize("late", list(Late))
def test_no_state_is_stuck_when_one_thing_is_late(late: Late) -> None:
    _assert_nothing_is_stuck(World(late=frozenset({late})))


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
def test_no_state_is_stuck_in_other_worlds(world: World) -> None:
    _assert_nothing_is_stuck(world)


def test_an_equal_claim_written_again_ends_the_wait_for_koord_manager() -> None:
    world = World(late=frozenset({Late.PUBLICATION}), publishes_on_events_only=True)
    _assert_nothing_is_stuck(world)
    assert all(verdict.stuck > 0 for verdict in _judge(world, mutants.NeverNudges()).values())
