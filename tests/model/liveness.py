# SPDX-License-Identifier: Apache-2.0
"""Check that from every state a calm path leads to where the boundary is wanted.

Calm means: what is on its way arrives, waiting times end, koord-manager publishes, the bridge reads, patches and sends
by one steady wish. Nobody starts or stops a pod or a container, and nothing new goes wrong. H plays no part, so a state
is a pair of sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tests.model.explorer import Explorer
from tests.model.tables import SIDE_BITS, VALUE_BITS

_SIDE_MASK = (1 << SIDE_BITS) - 1


class Wish(StrEnum):
    """Name where the free part should go."""

    YARN = "the free part is YARN's"
    KUBERNETES = "T is the larger of use and floor, and published"


@dataclass(frozen=True, slots=True, kw_only=True)
class Liveness:
    """Hold how many pairs were looked at, how many of them are stuck, and one that is."""

    pairs: int
    stuck: int
    example: str = ""


class CalmWorld:
    """Look at the calm steps among the states that an explorer has found."""

    def __init__(self, explorer: Explorer, states: set[int], wish: Wish) -> None:
        """Take a world that was searched to its end, its states, and the wish."""
        self.explorer = explorer
        self.wish = wish
        self.pairs = {state >> VALUE_BITS for state in states}
        self._left: dict[int, tuple[int, ...]] = {}
        self._right: dict[int, tuple[int, ...]] = {}

    def judge(self) -> Liveness:
        """Search backwards from all pairs in which the wish has come true."""
        before: dict[int, list[int]] = {}
        for pair in list(self.pairs):
            for after in self._calm(pair):
                before.setdefault(after, []).append(pair)
        reached = {pair for pair in self.pairs if self._has_come_true(pair)}
        waiting = list(reached)
        while waiting:
            for pair in before.get(waiting.pop(), ()):
                if pair not in reached:
                    reached.add(pair)
                    waiting.append(pair)
        stuck = [pair for pair in self.pairs if pair not in reached and self._origin_is_known(pair)]
        return Liveness(pairs=len(self.pairs), stuck=len(stuck), example=self._tell(stuck[0]) if stuck else "")

    def _calm(self, pair: int) -> set[int]:
        left, right = pair >> SIDE_BITS, pair & _SIDE_MASK
        after = {step << SIDE_BITS | right for step in self._calm_left(left)}
        after.update(left << SIDE_BITS | step for step in self._calm_right(right))
        after.update(self._bridge(left, right))
        unknown = after - self.pairs
        assert not unknown, "a calm step leads out of the states that were found"
        return after

    def _calm_left(self, left: int) -> tuple[int, ...]:
        table, known = self.explorer.left, self._left.get(left)
        if known is None:
            steps = {table.number(item) for item in table.actor.calm(table.states.items[left])}
            known = self._left[left] = tuple(steps - {left})
        return known

    def _calm_right(self, right: int) -> tuple[int, ...]:
        table, known = self.explorer.right, self._right.get(right)
        if known is None:
            sides = table.states.items[right]
            steps = {
                table.number((*sides[:place], item, *sides[place + 1 :]))
                for place, side in enumerate(sides)
                for item in table.actor.calm(side)
            }
            known = self._right[right] = tuple(steps - {right})
        return known

    def _bridge(self, left: int, right: int) -> set[int]:
        tables = self.explorer
        after: set[int] = set()
        yarn = tables.right.views.items[tables.right.part[right]]
        for number in tables.left.parts[left]:
            part = tables.left.views.items[number]
            decision = tables.bridge.decide(part, yarn, self._goals(left, right))
            if decision.claim != part.claimed or decision.wants_counter or decision.waits_for_publication:
                after.add(tables.left.patch(left, decision.claim) << SIDE_BITS | right)
            for place, value in enumerate(decision.capacities):
                if value is not None:
                    after.update(left << SIDE_BITS | step for step in tables.right.update(right, place, value))
        return after

    def _goals(self, left: int, right: int) -> tuple[int, ...]:
        """Give the boundary: all that is free to the first NodeManager, or no more than its use to each."""
        state = self.explorer.left.states.items[left]
        sides = self.explorer.right.states.items[right]
        used = [self.explorer.right.actor.memory(side.known).used for side in sides]
        if self.wish is Wish.KUBERNETES:
            return tuple(used)
        rest = sum(max(amount, self.explorer.world.floor) for amount in used[1:])
        free = max(state.view.origin, 0) - self.explorer.world.reserve - state.bound - rest
        return (max(free, 0), *used[1:])

    def _origin_is_known(self, pair: int) -> bool:
        return self.explorer.left.states.items[pair >> SIDE_BITS].node.origin >= 0

    def _has_come_true(self, pair: int) -> bool:
        state = self.explorer.left.states.items[pair >> SIDE_BITS]
        sides = self.explorer.right.states.items[pair & _SIDE_MASK]
        floor = self.explorer.world.floor
        if not self._origin_is_known(pair):
            return False
        if self.wish is Wish.KUBERNETES:
            held = sum(max(side.used, floor) for side in sides)
            return state.node.claimed == held and state.node.allocatable == max(state.node.origin - held, 0)
        rest = sum(max(side.used, floor) for side in sides[1:])
        free = max(state.node.origin - self.explorer.world.reserve - state.bound - rest, floor)
        return sides[0].scheduled == free and not state.binds

    def _tell(self, pair: int) -> str:
        left = self.explorer.left.states.items[pair >> SIDE_BITS]
        sides = self.explorer.right.states.items[pair & _SIDE_MASK]
        memories = [self.explorer.right.actor.memory(side.known) for side in sides]
        return f"{left} {sides} {memories}"
