# SPDX-License-Identifier: Apache-2.0
"""Search a world of two nodes that share the bridge: its crashes, its terms and its calls.

Both nodes live in the same small world, so one set of tables serves both, and a state and its mirror image are one.
What the nodes share: the bridge crashes for both at once, and an update for each goes out in one call, which is
answered, lost or doubled as a whole. Everything else may happen to either alone. Each node is judged by its own H.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from tests.model.bridge import Bridge
from tests.model.explorer import Explorer, Result
from tests.model.highest_origin import highest_after
from tests.model.tables import SIDE_BITS, VALUE_BITS
from tests.model.world import Late, World

_SIDE_MASK = (1 << SIDE_BITS) - 1
_H_MASK = (1 << VALUE_BITS) - 1

Half = tuple[int, int, int]
"""One node: number of Kubernetes' side, number of YARN's side, H."""
Pair = tuple[Half, Half]


class _SoldTwiceError(Exception):
    """Say how a node was sold twice."""


class TwoNodes:
    """Search the world of two nodes breadth first."""

    def __init__(self, world: World, bridge: Bridge | None = None) -> None:
        """Take the world that each node lives in, and the bridge."""
        self.one = Explorer(world, bridge)
        self.world = world

    def run(self) -> Result:
        """Search until nothing new is found or a violation is."""
        began = time.monotonic()
        result = Result()
        first = self._half(self.one.start())
        seen: set[Pair] = {(first, first)}
        try:
            self._search(seen, result)
            result.is_complete = True
        except _SoldTwiceError as problem:
            result.violation = str(problem)
        result.states, result.seconds = len(seen), time.monotonic() - began
        return result

    def _search(self, seen: set[Pair], result: Result) -> None:
        frontier = list(seen)
        while frontier:
            found: list[Pair] = []
            for one, other in itertools.chain.from_iterable(map(self._following, frontier)):
                result.transitions += 1
                key = self._key(self._judged(one), self._judged(other))
                if key not in seen:
                    seen.add(key)
                    found.append(key)
            frontier = found
            result.depth += bool(found)

    @staticmethod
    def _half(state: int) -> Half:
        pair = state >> VALUE_BITS
        return pair >> SIDE_BITS, pair & _SIDE_MASK, state & _H_MASK

    @staticmethod
    def _key(one: Half, other: Half) -> Pair:
        """Give a state the number of its mirror image."""
        return (one, other) if one <= other else (other, one)

    def _judged(self, half: Half) -> Half:
        """Give a node with its new H."""
        left, right, high = half
        tables = self.one
        told, hand = tables.right.permitted[right], tables.left.in_hand[left]
        now = highest_after(tables.left.origin[left], tables.left.permitted[left] + max(told, hand), high)
        booked, used = tables.left.booked[left], tables.right.used[right]
        if booked + used > now:
            raise _SoldTwiceError(f"{booked} booked and {used} used of {now}")
        return left, right, now

    def _following(self, pair: Pair) -> Iterator[Pair]:
        one, other = pair
        for after in self._alone(one, other):
            yield after, other
        for after in self._alone(other, one):
            yield one, after
        if Late.CRASH in self.world.late:
            yield self._crashed(one), self._crashed(other)
        for first in self.updates(one, other):
            for second in self.updates(other, one):
                # One call carries both, so both have the same fate.
                for left, right in zip(first, second, strict=False):
                    yield (one[0], left, one[2]), (other[0], right, other[2])

    def _alone(self, half: Half, other: Half) -> Iterator[Half]:
        left, right, high = half
        tables = self.one
        steps = tables.left.steps[left]
        for after in tables.left.fill(left) if steps is None else steps:
            yield after, right, high
        steps = tables.right.steps[right]
        for after in tables.right.fill(right) if steps is None else steps:
            yield left, after, high
        for claim in self._decided(half, other)[0]:
            yield tables.left.patch(left, claim), right, high
        for following in self.updates(half, other):
            for after in following:
                yield left, after, high

    def _crashed(self, half: Half) -> Half:
        left, right, high = half
        for table, number in ((self.one.left, left), (self.one.right, right)):
            if table.steps[number] is None:
                table.fill(number)
        return self.one.left.crash[left], self.one.right.crash[right], high

    def parts(self, half: Half, other: Half) -> tuple[int, ...]:
        """Give what the bridge sees of Kubernetes' side when it plans a node; a mutant mixes the nodes up."""
        return self.one.left.parts[half[0]]

    def _decided(self, half: Half, other: Half) -> tuple[set[int], set[tuple[int, int]]]:
        own = self.one.right.part[half[1]]
        claims: set[int] = set()
        values: set[tuple[int, int]] = set()
        for part in self.parts(half, other):
            key = part << SIDE_BITS | own
            found = self.one.decisions.known.get(key) or self.one.decisions.decide(key)
            claims.update(found[0])
            values.update(found[1])
        return claims, values

    def updates(self, half: Half, other: Half) -> list[tuple[int, ...]]:
        """Give, for each update that may be sent to a node, what may come of it, one entry a fate."""
        _, values = self._decided(half, other)
        outcomes = (self.one.right.update(half[1], place, value) for place, value in sorted(values))
        return [outcome for outcome in outcomes if outcome]


class TakesTheOtherNodesRead(TwoNodes):
    """Grow a node by the fresh read of the other one."""

    def parts(self, half: Half, other: Half) -> tuple[int, ...]:
        views = self.one.left.views
        reads = [views.items[part].requested for part in self.one.left.parts[other[0]]]
        return tuple(
            views.number(views.items[part]._replace(requested=requested))
            for part, requested in itertools.product(self.one.left.parts[half[0]], reads)
        )
