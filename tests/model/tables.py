# SPDX-License-Identifier: Apache-2.0
"""Number the states of both sides of a small world and tabulate what each does alone and what the bridge decides.

The steps of one side depend on that side alone; only the bridge's decisions look at both, and only at what a decision
takes from either. So the tables stay small while their product, which the explorer visits, is large.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from typing import Generic, TypeVar

from tests.model.bridge import Bridge, KubernetesPart, Shown, YarnPart
from tests.model.kubernetes_side import Kubernetes, KubernetesSide
from tests.model.world import Late, World
from tests.model.yarn_side import UNDER_WAY, Yarn, YarnSide

Item = TypeVar("Item", bound=Hashable)

PLACE_BITS = 2
"""Bits for the number of a NodeManager."""
VALUE_BITS = 4
"""Bits for an amount of units."""
SIDE_BITS = 26
"""Bits for the number of a state of one side."""


class Interned(Generic[Item]):
    """Number values in the order of their discovery."""

    def __init__(self) -> None:
        """Begin empty."""
        self.items: list[Item] = []
        self._numbers: dict[Item, int] = {}

    def number(self, item: Item) -> int:
        """Give the number of a value."""
        known = self._numbers.get(item)
        if known is None:
            known = self._numbers[item] = len(self.items)
            self.items.append(item)
        return known


class KubernetesTable:
    """Hold Kubernetes' side; row i of each list belongs to state i."""

    def __init__(self, world: World, bridge: Bridge) -> None:
        """Take the world and the bridge."""
        self.world = world
        self.actor = Kubernetes(world, bridge)
        self.states: Interned[KubernetesSide] = Interned()
        self.views: Interned[KubernetesPart] = Interned()
        self.steps: list[tuple[int, ...] | None] = []
        self.origin: list[int] = []
        self.booked: list[int] = []
        self.permitted: list[int] = []
        self.in_hand: list[int] = []
        self.parts: list[tuple[int, ...]] = []
        self.crash: list[int] = []
        self._patches: dict[int, int] = {}

    def number(self, state: KubernetesSide) -> int:
        """Give the number of a state, with what every search has to know of it."""
        number = self.states.number(state)
        if number == len(self.steps):
            self.steps.append(None)
            self.crash.append(-1)
            booked = state.bound + state.binds
            self.origin.append(max(state.node.origin, 0))
            self.booked.append(booked)
            self.permitted.append(max(booked, state.node.allocatable, state.cached))
            promised = state.view.origin - self.world.reserve - state.fresh
            self.in_hand.append(max(0, promised) if state.fresh >= 0 else 0)
            self.parts.append(self._parts(state))
        return number

    def fill(self, own: int) -> tuple[int, ...]:
        """Give the steps of a state that is visited for the first time."""
        state = self.states.items[own]
        after = {self.number(item) for item in self.actor.successors(state)}
        steps = self.steps[own] = tuple(sorted(after - {own}))
        self.crash[own] = self.number(self.actor.crash(state)) if Late.CRASH in self.world.late else own
        return steps

    def _parts(self, state: KubernetesSide) -> tuple[int, ...]:
        fresh = [-1]
        if Late.PLAN not in self.world.late and not state.versions:
            fresh.append(state.bound)
        elif state.fresh >= 0:
            fresh.append(state.fresh)
        return tuple(
            self.views.number(KubernetesPart(*state.view, state.is_settled, state.call > 0, requested))
            for requested in fresh
        )

    def patch(self, state: int, claim: int) -> int:
        """Give the state after the bridge has issued a patch; the same one where nothing comes of it."""
        key = state << VALUE_BITS | claim
        after = self._patches.get(key)
        if after is None:
            patched = self.actor.issue_patch(self.states.items[state], claim)
            after = self._patches[key] = state if patched is None else self.number(patched)
        return after


class YarnTable:
    """Hold YARN's side, all NodeManagers together; row i of each list belongs to state i.

    While the answer to a read is on its way, everything but its arrival goes on as if it said something else. So the
    steps of such a state are worked out once for all answers: on its outline, the state with `UNDER_WAY` as answer.
    """

    def __init__(self, world: World, bridge: Bridge) -> None:
        """Take the world and the bridge."""
        self.world = world
        self.actor = Yarn(world, bridge)
        self.states: Interned[tuple[YarnSide, ...]] = Interned()
        self.views: Interned[tuple[YarnPart, ...]] = Interned()
        self.steps: list[tuple[int, ...] | None] = []
        self.used: list[int] = []
        self.permitted: list[int] = []
        self.offered: list[int] = []
        self.part: list[int] = []
        self.crash: list[int] = []
        self._updates: dict[int, tuple[int, ...]] = {}
        self._outlines: Interned[YarnSide] = Interned()
        self._outline_steps: dict[int, tuple[int, ...]] = {}
        self._outline_updates: dict[int, tuple[int, ...]] = {}
        self._answers: Interned[Shown] = Interned()
        self._joined: dict[int, int] = {}
        self._has_outlines = Late.READ in world.late and world.managers == 1

    def number(self, sides: tuple[YarnSide, ...]) -> int:
        """Give the number of a state, with what every search has to know of it."""
        number = self.states.number(sides)
        if number == len(self.steps):
            self.steps.append(None)
            self.crash.append(-1)
            self.used.append(sum(side.used for side in sides))
            self.permitted.append(sum(self.actor.permitted(side) for side in sides))
            self.offered.append(sum(self.actor.offered(side) for side in sides))
            parts = tuple(YarnPart(self.actor.memory(side.known), side.office == 2) for side in sides)
            self.part.append(self.views.number(parts))
        return number

    def fill(self, own: int) -> tuple[int, ...]:
        """Give the steps of a state that is visited for the first time."""
        sides = self.states.items[own]
        after = set()
        for place, side in enumerate(sides):
            if self._has_outlines and side.reading is not None:
                after.update(self._steps_while_reading(side, side.reading))
                continue
            for item in self.actor.successors(side):
                after.add(self.number((*sides[:place], item, *sides[place + 1 :])))
        steps = self.steps[own] = tuple(sorted(after - {own}))
        if Late.CRASH in self.world.late:
            self.crash[own] = self.number(tuple(self.actor.crash(side) for side in sides))
        return steps

    def update(self, state: int, place: int, value: int) -> tuple[int, ...]:
        """Give what may come of an update that the bridge sends; nothing where the world has no room for it."""
        key = (state << VALUE_BITS | value) << PLACE_BITS | place
        after = self._updates.get(key)
        if after is None:
            after = self._updates[key] = self._update(self.states.items[state], place, value)
        return after

    def _update(self, sides: tuple[YarnSide, ...], place: int, value: int) -> tuple[int, ...]:
        side = sides[place]
        if self._has_outlines and side.reading is not None:
            return self._update_while_reading(side, side.reading, value)
        return tuple(
            self.number((*sides[:place], item, *sides[place + 1 :])) for item in self.actor.issue_update(side, value)
        )

    def _steps_while_reading(self, side: YarnSide, answer: Shown) -> list[int]:
        outline = self._outlines.number(side._replace(reading=UNDER_WAY))
        known = self._outline_steps.get(outline)
        if known is None:
            after = {self._outlines.number(item) for item in self.actor.successors(self._outlines.items[outline])}
            known = self._outline_steps[outline] = tuple(after)
        return [*self._with_answer(known, answer), self.number((self.actor.read(side, answer),))]

    def _update_while_reading(self, side: YarnSide, answer: Shown, value: int) -> tuple[int, ...]:
        outline = self._outlines.number(side._replace(reading=UNDER_WAY))
        key = outline << VALUE_BITS | value
        known = self._outline_updates.get(key)
        if known is None:
            after = self.actor.issue_update(self._outlines.items[outline], value)
            known = self._outline_updates[key] = tuple([self._outlines.number(item) for item in after])
        return tuple(self._with_answer(known, answer))

    def _with_answer(self, outlines: tuple[int, ...], answer: Shown) -> list[int]:
        """Give the numbers of the states that have these outlines and this answer on its way."""
        own = self._answers.number(answer)
        numbers = []
        for outline in outlines:
            key = outline << SIDE_BITS | own
            number = self._joined.get(key)
            if number is None:
                state = self._outlines.items[outline]._replace(reading=answer)
                number = self._joined[key] = self.number((state,))
            numbers.append(number)
        return numbers


class DecisionTable:
    """Hold what the bridge may do, for whatever boundary it is asked for."""

    def __init__(self, world: World, bridge: Bridge, left: KubernetesTable, right: YarnTable) -> None:
        """Take the tables whose views it joins."""
        self.world = world
        self.bridge = bridge
        self._left = left
        self._right = right
        self.known: dict[int, tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = {}

    def decide(self, key: int) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Give the claims that may be patched and the pairs of NodeManager and capacity that may be sent.

        Args:
            key: number of the Kubernetes view, shifted by `SIDE_BITS`, and number of YARN's view.
        """
        part = self._left.views.items[key >> SIDE_BITS]
        yarn = self._right.views.items[key & ((1 << SIDE_BITS) - 1)]
        claims: set[int] = set()
        values: set[tuple[int, int]] = set()
        for goals in itertools.product(range(self.world.units + 1), repeat=len(yarn)):
            decision = self.bridge.decide(part, yarn, goals)
            wants_write = decision.claim != part.claimed or decision.wants_counter or decision.waits_for_publication
            if wants_write or self.bridge.repeats:
                claims.add(decision.claim)
            values.update((place, value) for place, value in enumerate(decision.capacities) if value is not None)
        found = self.known[key] = (tuple(sorted(claims)), tuple(sorted(values)))
        return found
