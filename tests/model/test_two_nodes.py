# SPDX-License-Identifier: Apache-2.0
"""No unit of either of two nodes is sold twice by a bridge that serves both."""

from __future__ import annotations

import pytest

from tests.model.two_nodes import TakesTheOtherNodesRead, TwoNodes
from tests.model.world import Late, World


def _world(*late: Late) -> World:
    return World(late=frozenset(late), units=1, most_sends=1, most_messages=1, most_versions=1, most_binds=1)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("late", [None, *Late])
def test_nothing_is_sold_twice_on_two_nodes(late: Late | None) -> None:
    result = TwoNodes(_world() if late is None else _world(late)).run()
    print(f"{late or 'nothing'} late, two nodes: {result.sentence()}")
    assert result.is_complete, result.violation
    assert result.states > 1000


def test_a_bridge_that_mixes_two_nodes_up_is_caught() -> None:
    assert TakesTheOtherNodesRead(_world()).run().violation
