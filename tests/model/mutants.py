# SPDX-License-Identifier: Apache-2.0
"""Hold bridges that drop one rule each; the search has to catch every one of them.

Each overrides the one place in which the world's values meet the product's rule, so what is dropped is exactly that
rule and everything else stays the product's own.
"""

from __future__ import annotations

from msgspec.structs import replace

from batch_resources import sends
from batch_resources.applied import ADOPTED_AFTER, AppliedEvidence, ManagerReading
from batch_resources.planner.strict_amounts import Decision, ManagerAmounts, NodeAmounts
from batch_resources.sends import Sends
from tests.model.bridge import Bridge, Known, KubernetesPart, Shown, YarnPart


class ForgetsTheFloor(Bridge):
    """Claim nothing for the capacity that a NodeManager registers with."""

    def __init__(self, *, floor: int = 0, reserve: int = 0) -> None:
        super().__init__(floor=floor * 0, reserve=reserve)


class TrustsThePodView(Bridge):
    """Grow by a view of the pods that is old: it shows none."""

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        return replace(super().node(part, managers), requested=0)


class FallsWithoutAFreshRead(Bridge):
    """Lower a capacity to a value above the use although nothing fresh is known of the pods.

    What looks like a fall is a growth where a restart, a failover or an older message has lowered it unseen.
    """

    def decide(self, part: KubernetesPart, yarn: tuple[YarnPart, ...], goals: tuple[int, ...]) -> Decision:
        decision = super().decide(part, yarn, goals)
        if part.origin < 0:
            return decision
        managers = [self.manager(side, goal) for side, goal in zip(yarn, goals, strict=True)]
        falls = (
            manager.goal if value is None and self.floor <= manager.goal < manager.lowest else value
            for manager, value in zip(managers, decision.capacities, strict=True)
        )
        may_send = [side.may_send and side.known.capacity is not None for side in yarn]
        return replace(decision, capacities=tuple(v if may else None for v, may in zip(falls, may_send, strict=True)))


class SettlesWhileTheConditionHolds(Bridge):
    """Start the settle clock when `A <= O - T` becomes true, instead of at every fall of A."""

    def see_version(
        self, before: tuple[int, int, int, bool], after: tuple[int, int, int, bool], *, is_settled: bool, is_gap: bool
    ) -> tuple[bool, bool]:
        held = before[1] <= max(before[0] - before[2], 0)
        holds = after[1] <= max(after[0] - after[2], 0)
        restarted = holds and not held
        return is_settled and not restarted, restarted


class DoesNotSettle(Bridge):
    """Grow as soon as the claim is published."""

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        return replace(super().node(part, managers), is_settled=True)


class OverlooksGaps(Bridge):
    """Compare the last two views and let a gap in the watch count for nothing."""

    def see_version(
        self, before: tuple[int, int, int, bool], after: tuple[int, int, int, bool], *, is_settled: bool, is_gap: bool
    ) -> tuple[bool, bool]:
        return super().see_version(before, after, is_settled=is_settled, is_gap=False)


class JudgesByTheLastCapacitySeen(Bridge):
    """Take a value below the capacity that was read last for a shrink, whatever is on its way, and send it at once."""

    def manager(self, part: YarnPart, goal: int) -> ManagerAmounts:
        return replace(super().manager(part, goal), unconfirmed=())

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        node = super().node(part, managers)
        return node if node.requested is not None else replace(node, requested=0, is_settled=False)


class TestsTheTextAlone(Bridge):
    """Patch the claim if its text is still the same, without a counter."""

    __test__ = False
    tests_counter = False

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        return replace(super().node(part, managers), counter_is_ours=True, has_outstanding_patch=False)


class GrowsWithoutAWriteOfItsTerm(Bridge):
    """Grow after a takeover although a patch of the last leader may still land."""

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        return replace(super().node(part, managers), counter_is_ours=True)


class GrowsWithAPatchOutstanding(Bridge):
    """Grow although an own patch may still land."""

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        return replace(super().node(part, managers), has_outstanding_patch=False)


class BelievesOneRead(Bridge):
    """Let the claim fall by a single read with nothing on its way."""

    def judged(self, evidence: AppliedEvidence, reading: ManagerReading, *, counts: bool) -> AppliedEvidence:
        if not counts or reading.scheduler_total != reading.capacity:
            return super().judged(evidence, reading, counts=counts)
        proven = reading.capacity.at_least(reading.used)
        return AppliedEvidence(used=reading.used, first=reading, proven=proven)


class BelievesTheFirstRead(Bridge):
    """Take the first read after a start as what is in force."""

    def judged(self, evidence: AppliedEvidence, reading: ManagerReading, *, counts: bool) -> AppliedEvidence:
        if evidence.used is not None:
            return super().judged(evidence, reading, counts=counts)
        return AppliedEvidence(used=reading.used, first=reading, proven=reading.capacity.at_least(reading.used))


class ConfirmsByANewerValue(Bridge):
    """Forget all updates as soon as the value of the newest is read."""

    def confirmed(self, known: Known, shown: Shown) -> Sends:
        if known.sends and known.sends[-1].resources.vcores == shown.listed:
            return ()
        return super().confirmed(known, shown)


class ForgetsConfirmedUpdates(Bridge):
    """Take an update that was answered and read back for dead."""

    def confirmed(self, known: Known, shown: Shown) -> Sends:
        return sends.unconfirmed(super().confirmed(known, shown))


class ActsAtOnceAfterATakeover(Bridge):
    """Believe reads, and send, before the messages of the last leader have died."""

    def manager(self, part: YarnPart, goal: int) -> ManagerAmounts:
        return replace(super().manager(part, goal), may_send=True, is_read=True)

    def learn(self, known: Known, shown: Shown) -> Known:
        return super().learn(known, shown._replace(is_late_enough=True))


class TrustsTheNodeList(Bridge):
    """Take the total of the node list for the one that the scheduler works with."""

    def learn(self, known: Known, shown: Shown) -> Known:
        return super().learn(known, shown._replace(scheduled=shown.listed))


class TakesAPollForAHeartbeat(Bridge):
    """Count two reads in a row without having heard of the NodeManager between them."""

    def learn(self, known: Known, shown: Shown) -> Known:
        return super().learn(known, shown._replace(was_heard=True))


class TakesAHeartbeatForItsAnswer(Bridge):
    """Take a total for adopted as soon as the NodeManager was heard, though its answer may be lost."""

    def judged(self, evidence: AppliedEvidence, reading: ManagerReading, *, counts: bool) -> AppliedEvidence:
        return super().judged(replace(evidence, heard=ADOPTED_AFTER), reading, counts=counts)


class GrowsBeforeItClaims(Bridge):
    """Raise capacity first and claim it afterwards."""

    def node(self, part: KubernetesPart, managers: tuple[ManagerAmounts, ...]) -> NodeAmounts:
        node = super().node(part, managers)
        return replace(node, claimed=max(node.claimed, *(manager.goal for manager in managers)), allocatable=0)


class ReadsUnknownUseAsZero(Bridge):
    """Let the claim fall although nothing is known of use and capacity yet."""

    def manager(self, part: YarnPart, goal: int) -> ManagerAmounts:
        manager = super().manager(part, goal)
        return replace(manager, proven=0, may_send=True, is_read=True) if part.known.capacity is None else manager


class TakesATimeoutForAFailure(Bridge):
    """Forget an update whose call timed out."""

    def timed_out(self, known: Known, value: int) -> Known:
        kept = [send for send in known.sends if send.resources.vcores != value or send.answered_at is not None]
        return Known(known.capacity, known.evidence, tuple(kept))


class GrowsToUseByAnOldRead(Bridge):
    """Drop an update at the end of its lifetime, without waiting for a read that began after it."""

    def aged(self, known: Known) -> Known:
        return Known(known.capacity, known.evidence, known.sends[1:])


class OverlooksTheOtherCluster(Bridge):
    """Grow although another NodeManager of the node has not been read in this term."""

    def manager(self, part: YarnPart, goal: int) -> ManagerAmounts:
        return replace(super().manager(part, goal), is_read=True)


class NeverNudges(Bridge):
    """Wait for koord-manager without writing an equal claim again."""

    def decide(self, part: KubernetesPart, yarn: tuple[YarnPart, ...], goals: tuple[int, ...]) -> Decision:
        return replace(super().decide(part, yarn, goals), waits_for_publication=False)
