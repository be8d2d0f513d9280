# SPDX-License-Identifier: Apache-2.0
"""Remember, for one node, which permissions may still be open on Kubernetes' side.

Fed with every version of the Node that the watch delivers, in order, and with nothing else: the answer to a patch of
ours, or a read, can be newer than the watch, and a fall between would be missed. Only the counter is also learned from
the answer to our own patch. Times are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from batch_resources.counting import CounterMemory, note_patch_issued, note_patch_refused, observe_counter
from batch_resources.ledger import Permissions
from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.settling import SettleClock, observe_gap, observe_version
from yarn_copilot.controller.state.nodes import NodeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class FreshRead:
    """Hold a consistent read of a node's pods and of the Node after it.

    Attributes:
        requested: K by the list; None when a pod cannot be counted.
        facts: the Node as read; the read counts once the watch has delivered this version, and no other since.
        began_at: moment before the first of the two reads.
    """

    requested: BatchResources | None
    facts: NodeFacts
    began_at: float


@dataclass(slots=True, kw_only=True)
class PermissionMemory:
    """Hold the history of one Node that mode strict needs."""

    clock: SettleClock = field(default_factory=SettleClock)
    counter: CounterMemory = field(default_factory=CounterMemory)
    watched: NodeFacts | None = None
    counter_version: int = 0
    fresh: FreshRead | None = None
    written_at: float | None = None

    def note_version(self, facts: NodeFacts, *, now: float) -> bool:
        """Take the next version that the watch delivered.

        Returns:
            Whether a fresh read waited for this version.
        """
        before = self.watched
        if before is not None and facts.version <= before.version:
            return False
        self.watched = facts
        self.clock = observe_version(self.clock, facts.allocatable, now=now)
        if before is None or before.claimed != facts.claimed or before.counter != facts.counter:
            self.written_at = now
        self.learn_counter(facts)
        if self.fresh is not None and facts.version > self.fresh.facts.version and not _same(facts, self.fresh.facts):
            self.fresh = None
        return self.fresh is not None and (before is None or before.version < self.fresh.facts.version)

    def note_gap(self, *, now: float) -> None:
        """Note that versions may have been missed: the Nodes were listed anew."""
        self.clock = observe_gap(self.clock, now=now)
        self.fresh = self.watched = None
        self.counter_version = 0

    def learn_counter(self, facts: NodeFacts) -> None:
        """Take the counter of a version, from the watch or from the answer to our own patch; older ones are known."""
        if facts.version >= self.counter_version:
            self.counter_version = facts.version
            self.counter = observe_counter(self.counter, facts.counter)

    def note_patch_issued(self) -> bool:
        """Note that a patch goes out now; tell whether an earlier one was unresolved."""
        had_one = self.counter.has_outstanding_patch
        self.counter = note_patch_issued(self.counter)
        return had_one

    def note_patch_refused(self, *, others_are_unresolved: bool) -> None:
        """Note that the patch issued last was refused for certain."""
        self.counter = note_patch_refused(self.counter, others_are_unresolved=others_are_unresolved)

    def take_read(self, read: FreshRead) -> bool:
        """Keep a fresh read; tell whether it can be used at once, without waiting for the watch."""
        self.fresh = read
        watched = self.watched
        if watched is not None and watched.version > read.facts.version and not _same(watched, read.facts):
            self.fresh = None
        return watched is not None and watched.version >= read.facts.version

    def permissions(self, facts: NodeFacts, term: str, *, watch_lag_seconds: float = 0.0) -> Permissions:
        """Put what is known into the planner's values.

        Args:
            facts: the newest facts of the Node.
            term: name of this term of office.
            watch_lag_seconds: how far the watch was behind lately.
        """
        fresh, watched = self.fresh, self.watched
        has_caught_up = fresh is not None and watched is not None and watched.version >= fresh.facts.version
        return Permissions(
            allocatable=facts.allocatable or ZERO_BATCH,
            settle_since=self.clock.since,
            requested=fresh.requested if fresh is not None and has_caught_up else None,
            requested_at=fresh.began_at if fresh is not None and has_caught_up else None,
            counter_is_ours=self.counter.is_of_term(term),
            has_outstanding_patch=self.counter.has_outstanding_patch,
            written_at=self.written_at,
            watch_lag_seconds=watch_lag_seconds,
            can_be_forced=facts.has_ratio,
        )


def _same(one: NodeFacts, other: NodeFacts) -> bool:
    """Tell whether two versions say the same of everything that a growth depends on."""
    return (
        one.origin == other.origin
        and one.allocatable == other.allocatable
        and one.third_party_text == other.third_party_text
        and one.counter == other.counter
    )
