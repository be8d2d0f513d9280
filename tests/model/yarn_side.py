# SPDX-License-Identifier: Apache-2.0
"""Play one cluster's ResourceManager and NodeManager, and what the bridge has learned of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.model.bridge import Bridge, Known, Shown, aged_count
from tests.model.world import Late, World

UNDER_WAY = Shown(-1, -1, -1, False, False, False, -1)
"""Stands for any answer to a read that is on its way, where what it says plays no part."""


class YarnSide(NamedTuple):
    """Be everything on YARN's side.

    `listed`, `scheduled` and `adopted` are the totals of the node list, the scheduler and the NodeManager, `pending`
    those on their way from list to scheduler. `shows_zero`: use is shown as zero; `was_heard`: a heartbeat came since
    the bridge's last read; `told`: the total in an answer that was lost on its way to the NodeManager, which sends its
    report again, and no new one before it has the answer; `is_another`: another ResourceManager since the last read.
    `messages` are updates on their way, `copies` those that have landed once, `strays` those of earlier terms.
    `office` is 0 in the first lifetime of a term, 1 after it, 2 after a read that began then. `known` numbers the
    bridge's memory; `reading` is an answer to a read on its way.
    """

    listed: int
    scheduled: int
    adopted: int
    used: int
    shows_zero: bool
    was_heard: bool
    told: int | None
    is_another: bool
    pending: tuple[int, ...]
    messages: tuple[int, ...]
    copies: tuple[int, ...]
    strays: tuple[int, ...]
    office: int
    known: int
    reading: Shown | None


class Yarn:
    """Give the steps of YARN's side in one world."""

    def __init__(self, world: World, bridge: Bridge) -> None:
        """Take the world and the bridge whose memory is kept up here."""
        self.world = world
        self.bridge = bridge
        self.late = world.late
        self._beats_late = not world.late.isdisjoint({Late.HEARTBEAT, Late.ANSWER})
        self._memories: list[Known] = []
        self._numbers: dict[Known, int] = {}
        self._learned: dict[tuple[int, Shown], int] = {}

    def memory(self, number: int) -> Known:
        """Give a memory by its number."""
        return self._memories[number]

    def _number(self, known: Known) -> int:
        number = self._numbers.get(known)
        if number is None:
            number = self._numbers[known] = len(self._memories)
            self._memories.append(known)
        return number

    def initial(self) -> YarnSide:
        """Begin with the floor and nothing in use."""
        floor, nothing = self.world.floor, self._number(self.bridge.nothing())
        heard = not self._beats_late
        return YarnSide(floor, floor, floor, 0, False, heard, None, False, (), (), (), (), 0, nothing, None)

    def permitted(self, state: YarnSide) -> int:
        """Give the most that may be used by what YARN has been told, the last use that was read included.

        A total that the NodeManager has not given up yet, or is told by an answer on its way, counts: a failover brings
        it back, whatever the bridge does.
        """
        told = 0 if state.told is None else state.told
        return max(self.offered(state), state.adopted, told, state.used, self.memory(state.known).used)

    def offered(self, state: YarnSide) -> int:
        """Give the largest capacity in force or on its way."""
        return max(state.listed, state.scheduled, *state.pending, *state.messages, *state.copies, *state.strays)

    def successors(self, state: YarnSide) -> Iterator[YarnSide]:
        """Give all next states, equal ones included."""
        yield from self.calm(state)
        if state.used < state.scheduled:
            yield state._replace(used=state.used + 1)
        if state.used:
            yield state._replace(used=state.used - 1)
        yield from self._losses(state)
        yield from self._troubles(state)

    def calm(self, state: YarnSide) -> Iterator[YarnSide]:
        """Give what happens when nothing is lost and nothing new comes."""
        for value, rest in _each(state.messages):
            yield self._answer(self._land(state._replace(messages=rest), value), value)
        for value, rest in _each(state.copies):
            yield self._land(state._replace(copies=rest), value)
        for value, rest in _each(state.strays):
            yield self._land(state._replace(strays=rest), value)
        if state.pending:
            yield self._schedule(state)
        if state.told is not None:
            # A report that is sent again is answered as before and not taken a second time.
            yield state._replace(adopted=state.told, told=None)
        elif self._beats_late:
            yield self._hear(state)._replace(adopted=state.listed)
        if state.shows_zero:
            yield state._replace(shows_zero=False)
        yield from self._readings(state)
        yield from self._lifetimes(state)

    @staticmethod
    def _hear(state: YarnSide) -> YarnSide:
        return state._replace(was_heard=True, shows_zero=state.shows_zero and bool(state.pending))

    def _answer(self, state: YarnSide, value: int) -> YarnSide:
        known = self.bridge.answered(self.memory(state.known), value, is_reading=state.reading is not None)
        return state._replace(known=self._number(known))

    def _time_out(self, state: YarnSide, value: int) -> YarnSide:
        return state._replace(known=self._number(self.bridge.timed_out(self.memory(state.known), value)))

    def _readings(self, state: YarnSide) -> Iterator[YarnSide]:
        shown = Shown(
            state.listed,
            state.scheduled,
            0 if state.shows_zero else state.used,
            state.was_heard,
            state.is_another,
            state.office > 0,
            aged_count(self.memory(state.known)),
        )
        after = state._replace(is_another=False)
        if self._beats_late:
            after = after._replace(was_heard=False)
        elif not state.pending:
            after = after._replace(shows_zero=False)  # a heartbeat follows at once
        if Late.READ not in self.late:
            yield self._learn(after, shown)
        elif state.reading is None:
            yield after._replace(reading=shown)
        elif state.reading is not UNDER_WAY:
            yield self.read(state, state.reading)

    def read(self, state: YarnSide, reading: Shown) -> YarnSide:
        """Let the answer to a read arrive."""
        return self._learn(state._replace(reading=None), reading)

    def _learn(self, state: YarnSide, shown: Shown) -> YarnSide:
        key = (state.known, shown)
        known = self._learned.get(key)
        if known is None:
            known = self._learned[key] = self._number(self.bridge.learn(self.memory(state.known), shown))
        return state._replace(known=known, office=2 if shown.is_late_enough else state.office)

    def _lifetimes(self, state: YarnSide) -> Iterator[YarnSide]:
        """End a lifetime: no copy of the message is on its way any more, not even inside the ResourceManager."""
        if state.office == 0 and not state.strays and not state.pending:
            yield state._replace(office=1)
        known = self.memory(state.known)
        oldest = aged_count(known)
        if oldest < len(known.sends):
            value = known.sends[oldest].resources.vcores
            if value not in state.messages and value not in state.copies and value not in state.pending:
                yield state._replace(known=self._number(self.bridge.aged(known)))

    def _losses(self, state: YarnSide) -> Iterator[YarnSide]:
        for value, rest in _each(state.messages):
            without = state._replace(messages=rest)
            if Late.LOSS in self.late:
                yield self._time_out(without, value)
                yield self._time_out(state, value)
                yield self._time_out(self._land(without, value), value)
            if Late.DOUBLE in self.late:
                copied = without._replace(copies=tuple(sorted((*state.copies, value))))
                yield self._answer(self._land(copied, value), value)
        if Late.ANSWER in self.late and state.told is None:
            yield self._hear(state)._replace(told=state.listed)
        if Late.LOSS in self.late:
            for _, rest in _each(state.copies):
                yield state._replace(copies=rest)
            for _, rest in _each(state.strays):
                yield state._replace(strays=rest)

    def _troubles(self, state: YarnSide) -> Iterator[YarnSide]:
        if self._beats_late:
            total = state.adopted
            zero = Late.ZERO in self.late and bool(state.used)
            yield state._replace(listed=total, scheduled=total, pending=(), told=None, is_another=True, shows_zero=zero)
        if Late.RESTART in self.late:
            total = self.world.floor
            fresh = state._replace(listed=total, scheduled=total, adopted=total, told=None, pending=())
            yield fresh._replace(used=0, shows_zero=False)
            if state.used:
                # Its containers may live on. A node that reconnects is kept, and updated only where its total differs.
                differs = (state.listed, state.scheduled) != (total, total)
                yield fresh._replace(shows_zero=state.shows_zero or (Late.ZERO in self.late and differs))

    def _land(self, state: YarnSide, value: int) -> YarnSide:
        if value == state.listed and not state.pending:
            return state  # the ResourceManager ignores what changes nothing
        state = state._replace(listed=value)
        if not self._beats_late:
            state = state._replace(adopted=value)
        if Late.ALLOCATION not in self.late:
            return self._schedule(state._replace(pending=(value,)))
        if len(state.pending) >= 2:
            state = self._schedule(state)
        return state._replace(pending=(*state.pending, value))

    def _schedule(self, state: YarnSide) -> YarnSide:
        zero = state.shows_zero or (Late.ZERO in self.late and state.used > 0)
        return state._replace(scheduled=state.pending[0], pending=state.pending[1:], shows_zero=zero)

    def issue_update(self, state: YarnSide, value: int) -> Iterator[YarnSide]:
        """Send an update and give what may come of it; nothing where the world has no room for another message."""
        known = self.memory(state.known)
        on_their_way = len(state.messages) + len(state.copies) + len(state.strays)
        if len(known.sends) >= self.world.most_sends or on_their_way >= self.world.most_messages:
            return
        sent = state._replace(known=self._number(self.bridge.sent(known, value)))
        if Late.MESSAGE in self.late:
            yield sent._replace(messages=tuple(sorted((*sent.messages, value))))
            return
        landed = self._land(sent, value)
        yield self._answer(landed, value)
        if Late.LOSS in self.late:
            yield self._time_out(sent, value)
            yield self._time_out(landed, value)
        if Late.DOUBLE in self.late:
            yield self._answer(landed._replace(copies=tuple(sorted((*landed.copies, value)))), value)

    def crash(self, state: YarnSide) -> YarnSide:
        """Start the bridge anew: it knows nothing, and its messages stay on their way."""
        strays = tuple(sorted((*state.strays, *state.messages, *state.copies)))
        known = self._number(self.bridge.nothing())
        return state._replace(messages=(), copies=(), strays=strays, office=0, known=known, reading=None)


def _each(values: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Give each value with the others; equal ones once."""
    for index, value in enumerate(values):
        if index == 0 or values[index - 1] != value:
            yield value, values[:index] + values[index + 1 :]
