# SPDX-License-Identifier: Apache-2.0
"""Everything late at once: far too many states for every day.

`YARN_COPILOT_MODEL_STATES` and `YARN_COPILOT_MODEL_SECONDS` bound the search; the depth reached is printed. Memory is
about 90 bytes a state.
"""

from __future__ import annotations

import os

import pytest

from tests.model.explorer import Explorer
from tests.model.world import Late, World

MOST_STATES = int(os.environ.get("YARN_COPILOT_MODEL_STATES", "55_000_000"))
MOST_SECONDS = float(os.environ.get("YARN_COPILOT_MODEL_SECONDS", "5400"))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_is_sold_twice_when_everything_is_late() -> None:
    world = World(late=frozenset(Late))
    result = Explorer(world).run(most_states=MOST_STATES, most_seconds=MOST_SECONDS)
    print(f"everything late: {result.sentence()}")
    assert not result.violation


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("third", list(Late))
def test_nothing_is_sold_twice_when_three_things_are_late(third: Late) -> None:
    """Origin changes in the middle of it, and the bridge crashes: with each further kind."""
    kinds = frozenset({Late.ORIGIN, Late.CRASH, third})
    result = Explorer(World(late=kinds)).run(most_states=MOST_STATES // 10, most_seconds=MOST_SECONDS / 10)
    print(f"{' and '.join(sorted(kinds))} late: {result.sentence()}")
    assert not result.violation
