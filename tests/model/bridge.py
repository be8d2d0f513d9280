# SPDX-License-Identifier: Apache-2.0
"""Let the product's own rules play the bridge of the small world.

Nothing is decided here. Each method puts the world's few units into the product's values, calls the product's
function, and takes the answer out again; what depends on time is given moments before or after the limit. Mutants
override a method to drop a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from batch_resources import applied, counting, sends, settling
from batch_resources.applied import AppliedEvidence, ManagerReading
from batch_resources.counting import Counter, CounterMemory
from batch_resources.planner.strict_amounts import Decision, ManagerAmounts, NodeAmounts
from batch_resources.planner.strict_rules import changes_something, decide
from batch_resources.resources import BatchResources, YarnResources
from batch_resources.sends import Sends
from batch_resources.settling import SettleClock

NOW = 10.0
SETTLE_SECONDS = 1.0
LIFETIME_SECONDS = 1.0
_LONG_AGO = NOW - 5.0
_OF_TERM = Counter(1, "mine")
_OF_OTHERS = Counter(1, "other")


class Shown(NamedTuple):
    """Be one read: node list, scheduler total, use, what happened since the last one, and when it began.

    `is_late_enough`: after the first lifetime of the term. `aged` is how many of the oldest updates were past their
    lifetime then.
    """

    listed: int
    scheduled: int
    used: int
    was_heard: bool
    is_another: bool
    is_late_enough: bool
    aged: int


@dataclass(frozen=True, slots=True)
class Known:
    """Be the bridge's memory of one NodeManager."""

    capacity: int | None
    evidence: AppliedEvidence
    sends: Sends

    @property
    def used(self) -> int:
        """Give the use that is believed."""
        return 0 if self.evidence.used is None else self.evidence.used.vcores


class KubernetesPart(NamedTuple):
    """Be all that a plan takes from Kubernetes' side; `requested` is -1 without a fresh read."""

    origin: int
    allocatable: int
    claimed: int
    is_ours: bool
    is_settled: bool
    has_outstanding_patch: bool
    requested: int


class YarnPart(NamedTuple):
    """Be all that a plan takes from YARN's side."""

    known: Known
    may_send: bool


def aged_count(known: Known) -> int:
    """Count the updates past their lifetime; they are the oldest."""
    return sum(send.sent_at == _LONG_AGO for send in known.sends)


def _batch(value: int) -> BatchResources:
    return BatchResources(cpu_milli=value, memory_bytes=value)


def _yarn(value: int) -> YarnResources:
    return YarnResources(memory_mib=value, vcores=value)


class Bridge:
    """Be the bridge; holds no state of its own."""

    tests_counter = True
    """Whether a patch tests the counter; a mutant tests the claim's text alone."""

    repeats = False
    """Whether values that are in force are sent again, because the other resource of the node moves."""

    def __init__(self, *, floor: int = 0, reserve: int = 0) -> None:
        """Take m and R."""
        self.floor = floor
        self.reserve = reserve

    def see_version(
        self, before: tuple[int, int, int, bool], after: tuple[int, int, int, bool], *, is_settled: bool, is_gap: bool
    ) -> tuple[bool, bool]:
        """Take a version of the Node: whether the settle time is over now, and whether its clock was started."""
        clock = SettleClock(allocatable=_batch(before[1]), since=_LONG_AGO if is_settled else NOW - 0.5)
        clock = settling.observe_version(clock, _batch(after[1]), now=NOW)
        if is_gap:
            clock = settling.observe_gap(clock, now=NOW)
        return settling.is_settled(clock, now=NOW, settle_seconds=SETTLE_SECONDS), clock.since == NOW

    def is_patch_outstanding(self, before: bool, after: bool, *, changed: bool, outstanding: bool) -> bool:
        """Tell whether a patch of ours may still land after a version with another, or the same, counter."""
        seen = Counter(1, "mine" if before else "other")
        memory = CounterMemory(seen=seen, tested=seen if outstanding else None)
        newer = Counter(2, "mine" if after else "other") if changed else seen
        return counting.observe_counter(memory, newer).has_outstanding_patch

    def nothing(self) -> Known:
        """Give the memory after a start."""
        return Known(None, AppliedEvidence(), ())

    def sent(self, known: Known, value: int) -> Known:
        """Note an update that is sent now."""
        return Known(
            known.capacity,
            applied.start_anew(known.evidence),
            sends.record_send(known.sends, _yarn(value), now=NOW),
        )

    def answered(self, known: Known, value: int, *, is_reading: bool) -> Known:
        """Note the answer to the oldest update of this value that waits for one; `is_reading`: a read began before."""
        moment = NOW + 2 if is_reading else NOW
        for index, send in enumerate(known.sends):
            if send.resources.vcores == value and send.answered_at is None and not send.is_lost:
                changed = replace(send, answered_at=moment)
                return self._with(known, (*known.sends[:index], changed, *known.sends[index + 1 :]))
        return known

    def timed_out(self, known: Known, value: int) -> Known:
        """Note that the oldest open call of this value has ended without an answer."""
        for index, send in enumerate(known.sends):
            if send.resources.vcores == value and send.answered_at is None and not send.is_lost:
                changed = replace(send, is_lost=True)
                return self._with(known, (*known.sends[:index], changed, *known.sends[index + 1 :]))
        return known

    def aged(self, known: Known) -> Known:
        """Note that the lifetime of the oldest update that is still young is over."""
        count = aged_count(known)
        old = replace(known.sends[count], sent_at=_LONG_AGO)
        return self._with(known, (*known.sends[:count], old, *known.sends[count + 1 :]))

    @staticmethod
    def _with(known: Known, changed: Sends) -> Known:
        return Known(known.capacity, known.evidence, changed)

    def learn(self, known: Known, shown: Shown) -> Known:
        """Take a read into account."""
        remembered = self.confirmed(known, shown)
        reading = ManagerReading(
            capacity=_yarn(shown.listed),
            scheduler_total=_yarn(shown.scheduled),
            used=_yarn(shown.used),
            incarnation=int(shown.is_another),
            heartbeat=int(shown.was_heard),
        )
        counts = shown.is_late_enough and sends.all_show(remembered, reading.capacity)
        evidence = self.judged(known.evidence, reading, counts=counts)
        if evidence.first is not None:
            evidence = replace(evidence, first=replace(evidence.first, incarnation=0, heartbeat=0))
        before = tuple(send if send.answered_at is None else replace(send, answered_at=NOW) for send in remembered)
        return Known(shown.listed, evidence, before)

    def confirmed(self, known: Known, shown: Shown) -> Sends:
        """Drop the updates that were dead when a read began, and mark those that it confirms."""
        young = tuple(
            replace(send, sent_at=NOW) if index >= shown.aged else send for index, send in enumerate(known.sends)
        )
        kept = len(sends.expire(young, now=NOW, lifetime_seconds=LIFETIME_SECONDS))
        remembered = known.sends[len(known.sends) - kept :]
        return sends.mark_confirmed(remembered, _yarn(shown.listed), read_began_at=NOW + 1)

    def judged(self, evidence: AppliedEvidence, reading: ManagerReading, *, counts: bool) -> AppliedEvidence:
        """Let a read count for or against a fall."""
        return applied.observe_reading(evidence, reading, counts=counts)

    def manager(self, part: YarnPart, goal: int) -> ManagerAmounts:
        """Put one NodeManager into the rules' values."""
        known = part.known
        return ManagerAmounts(
            capacity=known.capacity,
            used=known.used,
            floor=self.floor,
            unconfirmed=tuple(send.resources.vcores for send in sends.unconfirmed(known.sends)),
            alive=tuple(send.resources.vcores for send in known.sends),
            proven=None if known.evidence.proven is None else known.evidence.proven.vcores,
            may_send=part.may_send,
            is_read=part.may_send,
            goal=goal,
        )

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        """Put the node into the rules' values."""
        return NodeAmounts(
            origin=None if part.origin < 0 else part.origin,
            reserve=self.reserve,
            claimed=part.claimed,
            allocatable=part.allocatable,
            requested=None if part.requested < 0 else part.requested,
            is_settled=part.is_settled,
            counter_is_ours=part.is_ours,
            has_outstanding_patch=part.has_outstanding_patch,
            managers=managers,
        )

    def decide(self, part: KubernetesPart, yarn: tuple[YarnPart, ...], goals: tuple[int, ...]) -> Decision:
        """Ask the product's rules; capacities that are under way already are left out."""
        managers = tuple(self.manager(side, goal) for side, goal in zip(yarn, goals, strict=True))
        decision = decide(self.node(part, managers))
        capacities = tuple(
            value if value is not None and self._is_worth_sending(side, manager, value) else None
            for side, manager, value in zip(yarn, managers, decision.capacities, strict=True)
        )
        return replace(decision, capacities=capacities)

    def _is_worth_sending(self, side: YarnPart, manager: ManagerAmounts, value: int) -> bool:
        known = side.known
        if sends.is_under_way(sends.unconfirmed(known.sends), _yarn(value)):
            return False
        if self.repeats:
            return True
        capacity = None if known.capacity is None else _yarn(known.capacity)
        return changes_something(manager, value) and sends.changes_value(known.sends, capacity, _yarn(value))
