# SPDX-License-Identifier: Apache-2.0
"""Visit every state that a small world can reach, breadth first, and judge each.

A state is one number: that of Kubernetes' side, that of YARN's, and H, the origin against which a sale is judged (see
`highest_origin`). Judged are every state (what is booked and what is used exceed H) and every growth as it is sent.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.model.bridge import Bridge
from tests.model.highest_origin import highest_after
from tests.model.tables import SIDE_BITS, VALUE_BITS, DecisionTable, KubernetesTable, YarnTable
from tests.model.world import Late, World

_SIDE_MASK = (1 << SIDE_BITS) - 1
_H_MASK = (1 << VALUE_BITS) - 1


@dataclass(slots=True)
class Result:
    """Hold what a search found: `violation` is a sentence, empty when there is none, `history` the way to it."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    seconds: float = 0.0
    is_complete: bool = False
    violation: str = ""
    history: list[str] = field(default_factory=list)

    def sentence(self) -> str:
        """Say it in one line."""
        end = "complete" if self.is_complete else "not complete"
        figures = f"{self.states:,} states, {self.transitions:,} transitions, depth {self.depth}"
        return f"{figures}, {self.seconds:.0f} s, {self.violation or end}"


class Explorer:
    """Search one world."""

    def __init__(self, world: World, bridge: Bridge | None = None) -> None:
        """Take the world and the bridge, the product's by default."""
        self.world = world
        self.bridge = bridge or Bridge(floor=world.floor, reserve=world.reserve)
        self.bridge.repeats = Late.OTHER in world.late
        self.left = KubernetesTable(world, self.bridge)
        self.right = YarnTable(world, self.bridge)
        self.decisions = DecisionTable(world, self.bridge, self.left, self.right)
        self.seen: set[int] = set()

    def start(self) -> int:
        """Give the first state."""
        left = self.left.number(self.left.actor.initial())
        right = self.right.number(tuple(self.right.actor.initial() for _ in range(self.world.managers)))
        return (left << SIDE_BITS | right) << VALUE_BITS | self.world.units

    def run(self, *, most_states: int = 1 << 62, most_seconds: float = 1e9, with_history: bool = False) -> Result:
        """Search until nothing new is found, a violation is, or a bound is reached.

        Args:
            most_states: stop soon after so many.
            most_seconds: stop soon after so long.
            with_history: remember how each state was reached; costs memory.
        """
        began = time.monotonic()
        result = Result()
        first = self.start()
        seen = self.seen = {first}
        parents: dict[int, int] | None = {first: -1} if with_history else None
        frontier = [first]
        while frontier and not result.violation:
            found: list[int] = []
            for count, state in enumerate(frontier):
                if count & 0xFFFF == 0xFFFF and self._is_over(began, most_seconds, most_states):
                    break
                bad = self._expand(state, seen, found, parents)
                result.transitions += self._count
                if bad is not None:
                    result.violation, last = bad
                    if parents is not None:
                        parents.setdefault(last, state)
                        result.history = self._tell(parents, state, last)
                    break
            frontier = found
            result.depth += bool(found)
            if self._is_over(began, most_seconds, most_states):
                break
        result.states = len(seen)
        result.seconds = time.monotonic() - began
        result.is_complete = not frontier and not result.violation
        return result

    def _is_over(self, began: float, most_seconds: float, most_states: int) -> bool:
        return len(self.seen) >= most_states or time.monotonic() - began >= most_seconds

    def _expand(
        self, state: int, seen: set[int], found: list[int], parents: dict[int, int] | None
    ) -> tuple[str, int] | None:
        """Add what comes after one state; give a violation and its state, None without."""
        high = state & _H_MASK
        pair = state >> VALUE_BITS
        left, right = pair >> SIDE_BITS, pair & _SIDE_MASK
        pairs = self.following(left, right, high)
        if isinstance(pairs, str):
            return pairs, state
        self._count = len(pairs)
        origins, booked, permitted, in_hand = (
            self.left.origin,
            self.left.booked,
            self.left.permitted,
            self.left.in_hand,
        )
        used, permitted_yarn = self.right.used, self.right.permitted
        for after in pairs:
            left, right = after >> SIDE_BITS, after & _SIDE_MASK
            origin = origins[left]
            told, hand = permitted_yarn[right], in_hand[left]
            now = highest_after(origin, permitted[left] + (told if told > hand else hand), high)
            key = after << VALUE_BITS | now
            if key not in seen:
                seen.add(key)
                found.append(key)
                if parents is not None:
                    parents[key] = state
                if booked[left] + used[right] > now:
                    return f"{booked[left]} booked and {used[right]} used of {now}", key
        return None

    _count = 0

    def following(self, left: int, right: int, high: int) -> list[int] | str:
        """Give the pairs of sides that can come next; a sentence instead when a growth is wrong as it is sent."""
        base = left << SIDE_BITS
        left_steps, right_steps = self.left.steps[left], self.right.steps[right]
        if left_steps is None:
            left_steps = self.left.fill(left)
        if right_steps is None:
            right_steps = self.right.fill(right)
        pairs = [after << SIDE_BITS | right for after in left_steps]
        pairs.extend([base | after for after in right_steps])
        if Late.CRASH in self.world.late:
            pairs.append(self.left.crash[left] << SIDE_BITS | self.right.crash[right])
        own = self.right.part[right]
        decisions = self.decisions
        for part in self.left.parts[left]:
            key = part << SIDE_BITS | own
            found = decisions.known.get(key)
            if found is None:
                found = decisions.decide(key)
            for claim in found[0]:
                pairs.append(self.left.patch(left, claim) << SIDE_BITS | right)
            for place, value in found[1]:
                following = self.right.update(right, place, value)
                if not following:
                    continue
                offered = max(map(self.right.offered.__getitem__, following))
                if offered > self.right.offered[right] and self.left.booked[left] + offered > high:
                    return f"{self.left.booked[left]} booked and {offered} of {high} offered by an update that is sent"
                pairs.extend([base | after for after in following])
        return pairs

    def _tell(self, parents: dict[int, int], before: int, last: int) -> list[str]:
        chain = [last] if last != before else []
        state = before
        while state != -1:
            chain.append(state)
            state = parents[state]
        chain.reverse()
        lines: list[str] = []
        old: dict[str, object] = {}
        for state in chain:
            pair = state >> VALUE_BITS
            values: dict[str, object] = {"H": state & _H_MASK}
            values.update(self.left.states.items[pair >> SIDE_BITS]._asdict())
            for place, side in enumerate(self.right.states.items[pair & _SIDE_MASK]):
                values.update({f"{name}{place}": value for name, value in side._asdict().items()})
            lines.append(", ".join(f"{name}={value}" for name, value in values.items() if old.get(name) != value))
            old = values
        return lines
