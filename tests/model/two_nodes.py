# SPDX-License-Identifier: Apache-2.0
"""Search a world of two nodes that share the bridge: its crashes, its terms and its calls.

Both nodes live in the same small world, so one set of tables serves both, and a state and its mirror image are one.
What the nodes share: the bridge crashes for both at once, and an update for each goes out in one call, which is
answered, lost or doubled as a whole. Everything else may happen to either alone. Each node is judged by its own H.

There are few states of one node and many pairs of them, so what may happen to one is worked out and judged once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.model.bridge import Bridge
from tests.model.explorer import Explorer, Result
from tests.model.highest_origin import highest_after
from tests.model.tables import SIDE_BITS, VALUE_BITS, Interned
from tests.model.world import Late, World

_SIDE_MASK = (1 << SIDE_BITS) - 1
_H_MASK = (1 << VALUE_BITS) - 1
_HALF_BITS = 30
_HALF_MASK = (1 << _HALF_BITS) - 1


class Half(NamedTuple):
    """Be one node: number of Kubernetes' side, number of YARN's side, H."""

    left: int
    right: int
    high: int


class Ways(NamedTuple):
    """Be what may happen to one node, in numbers of halves.

    `alone` without the other node; `updates`, for each update that may be sent to it, what may come of it, one entry a
    fate; `crashed` is the node after a crash of the bridge, -1 where the world has none.
    """

    alone: tuple[int, ...]
    updates: tuple[tuple[int, ...], ...]
    crashed: int


class _SoldTwiceError(Exception):
    """Say how a node was sold twice."""


class TwoNodes:
    """Search the world of two nodes breadth first."""

    def __init__(self, world: World, bridge: Bridge | None = None) -> None:
        """Take the world that each node lives in, and the bridge."""
        self.one = Explorer(world, bridge)
        self.world = world
        self.halves: Interned[Half] = Interned()
        self._ways: dict[int, Ways] = {}

    def run(self) -> Result:
        """Search until nothing new is found or a violation is."""
        began = time.monotonic()
        result = Result()
        state = self.one.start()
        pair = state >> VALUE_BITS
        first = self.halves.number(Half(pair >> SIDE_BITS, pair & _SIDE_MASK, state & _H_MASK))
        seen = {first << _HALF_BITS | first}
        try:
            self._search(seen, result)
            result.is_complete = True
        except _SoldTwiceError as problem:
            result.violation = str(problem)
        result.states, result.seconds = len(seen), time.monotonic() - began
        return result

    def _search(self, seen: set[int], result: Result) -> None:
        frontier = list(seen)
        while frontier:
            found: list[int] = []
            for state in frontier:
                after = self._following(state >> _HALF_BITS, state & _HALF_MASK)
                result.transitions += len(after)
                for key in after:
                    if key not in seen:
                        seen.add(key)
                        found.append(key)
            frontier = found
            result.depth += bool(found)

    def _following(self, one: int, other: int) -> list[int]:
        """Give the states after one; a state and its mirror image have the same number."""
        ways, others = self._ways_of(one, other), self._ways_of(other, one)
        after = [half << _HALF_BITS | other if half <= other else other << _HALF_BITS | half for half in ways.alone]
        after += [half << _HALF_BITS | one if half <= one else one << _HALF_BITS | half for half in others.alone]
        together: list[tuple[int, int]] = []
        if ways.crashed >= 0:
            together.append((ways.crashed, others.crashed))
        for first, second in itertools.product(ways.updates, others.updates):
            # One call carries both, so both have the same fate.
            together.extend(zip(first, second, strict=False))
        after += [min(both) << _HALF_BITS | max(both) for both in together]
        return after

    def _ways_of(self, own: int, other: int) -> Ways:
        key = self.depends_on(own, other)
        known = self._ways.get(key)
        if known is None:
            known = self._ways[key] = self._work_out(self.halves.items[own], self.halves.items[other])
        return known

    def depends_on(self, own: int, other: int) -> int:
        """Give a number of all that decides what may happen to a node: itself alone; a mutant mixes the nodes up."""
        return own

    def _work_out(self, half: Half, other: Half) -> Ways:
        updates = tuple(self._updates(half, other))
        alone = itertools.chain(self._alone(half, other), itertools.chain.from_iterable(updates))
        is_crashing = Late.CRASH in self.world.late
        return Ways(tuple(alone), updates, self._crashed(half) if is_crashing else -1)

    def _judged(self, left: int, right: int, high: int) -> int:
        """Give the number of a node with its new H."""
        tables = self.one
        told, hand = tables.right.permitted[right], tables.left.in_hand[left]
        now = highest_after(tables.left.origin[left], tables.left.permitted[left] + max(told, hand), high)
        booked, used = tables.left.booked[left], tables.right.used[right]
        if booked + used > now:
            raise _SoldTwiceError(f"{booked} booked and {used} used of {now}")
        return self.halves.number(Half(left, right, now))

    def _alone(self, half: Half, other: Half) -> Iterator[int]:
        """Give what comes without an update that is sent."""
        left, right, high = half
        tables = self.one
        steps = tables.left.steps[left]
        for after in tables.left.fill(left) if steps is None else steps:
            yield self._judged(after, right, high)
        steps = tables.right.steps[right]
        for after in tables.right.fill(right) if steps is None else steps:
            yield self._judged(left, after, high)
        for claim in self._decided(half, other)[0]:
            yield self._judged(tables.left.patch(left, claim), right, high)

    def _crashed(self, half: Half) -> int:
        left, right, high = half
        for table, number in ((self.one.left, left), (self.one.right, right)):
            if table.steps[number] is None:
                table.fill(number)
        return self._judged(self.one.left.crash[left], self.one.right.crash[right], high)

    def parts(self, half: Half, other: Half) -> tuple[int, ...]:
        """Give what the bridge sees of Kubernetes' side when it plans a node; a mutant mixes the nodes up."""
        return self.one.left.parts[half.left]

    def _decided(self, half: Half, other: Half) -> tuple[set[int], set[tuple[int, int]]]:
        own = self.one.right.part[half.right]
        claims: set[int] = set()
        values: set[tuple[int, int]] = set()
        for part in self.parts(half, other):
            key = part << SIDE_BITS | own
            found = self.one.decisions.known.get(key) or self.one.decisions.decide(key)
            claims.update(found[0])
            values.update(found[1])
        return claims, values

    def _updates(self, half: Half, other: Half) -> Iterator[tuple[int, ...]]:
        """Give, for each update that may be sent to a node, what may come of it, one entry a fate."""
        for place, value in sorted(self._decided(half, other)[1]):
            outcome = self.one.right.update(half.right, place, value)
            if outcome:
                yield tuple(self._judged(half.left, after, half.high) for after in outcome)


class TakesTheOtherNodesRead(TwoNodes):
    """Grow a node by the fresh read of the other one."""

    def depends_on(self, own: int, other: int) -> int:
        """Give a number of both nodes."""
        return own << _HALF_BITS | other

    def parts(self, half: Half, other: Half) -> tuple[int, ...]:
        """Mix the nodes up."""
        views = self.one.left.views
        reads = [views.items[part].requested for part in self.one.left.parts[other.left]]
        return tuple(
            views.number(views.items[part]._replace(requested=requested))
            for part, requested in itertools.product(self.one.left.parts[half.left], reads)
        )
