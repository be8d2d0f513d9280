# SPDX-License-Identifier: Apache-2.0
"""Prove that a lower capacity, or a lower use, is in force at the ResourceManager.

One read proves nothing: the node list may be ahead of the scheduler, which still allocates by the old total; right
after an update the use shown can be zero; another ResourceManager may take over and be told the old total by a
NodeManager that has not adopted the new one. Two reads prove it when no update of ours is unconfirmed, both show the
same capacity and a scheduler total equal to it, the ResourceManager is the same, and the NodeManager was heard between
them. What this module believes of use rises at once and falls by such a pair only.

A capacity takes one heartbeat more. The first one that is taken after an update brings the total in its answer, and an
answer can be lost: the NodeManager keeps its old total then and would tell it to another ResourceManager. It sends no
new heartbeat before it has that answer, so that the second one proves that the total has arrived.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batch_resources.resources import YarnResources

ADOPTED_AFTER: Final = 2
"""Heartbeats after which a NodeManager works with the total that the ResourceManager showed before them."""


class ManagerReading(Struct, frozen=True, kw_only=True):
    """Hold one read of one NodeManager at the ResourceManager.

    Attributes:
        capacity: the node's total in the node list.
        scheduler_total: used plus available in the scheduler; None when it was not read.
        used: what the scheduler says is handed out.
        incarnation: which ResourceManager answered; another value, another process.
        heartbeat: any value that changes only by a new heartbeat of the NodeManager, not by one that it sends again.
    """

    capacity: YarnResources
    scheduler_total: YarnResources | None
    used: YarnResources
    incarnation: object = 0
    heartbeat: object = 0


class AppliedEvidence(Struct, frozen=True, kw_only=True):
    """Hold what the reads have shown so far.

    Attributes:
        used: the highest use that may still be real; None before the first read.
        first: the read that waits for its second; None while nothing can be proven.
        heard: times that the NodeManager was heard between reads since the capacity is the one of `first`, at most
            `ADOPTED_AFTER`.
        proven: the larger of capacity and use that is proven; None while the capacity is not adopted for certain.
    """

    used: YarnResources | None = None
    first: ManagerReading | None = None
    heard: int = 0
    proven: YarnResources | None = None


def observe_reading(evidence: AppliedEvidence, reading: ManagerReading, *, counts: bool) -> AppliedEvidence:
    """Take one read into account.

    Args:
        evidence: what was known before.
        reading: the new read.
        counts: nothing of ours is unconfirmed, and the read began after every message of an earlier leader has died.
    """
    raised = reading.used if evidence.used is None else evidence.used.at_least(reading.used)
    if not counts or reading.scheduler_total != reading.capacity:
        return AppliedEvidence(used=raised)
    first = evidence.first
    if first is None or first.capacity != reading.capacity or first.incarnation != reading.incarnation:
        return AppliedEvidence(used=raised, first=reading)
    both = first.used.at_least(reading.used)
    if first.heartbeat == reading.heartbeat:
        proven = None if evidence.proven is None else evidence.proven.at_least(reading.used)
        return AppliedEvidence(used=raised, first=replace(first, used=both), heard=evidence.heard, proven=proven)
    heard = min(evidence.heard + 1, ADOPTED_AFTER)
    proven = both.at_least(reading.capacity) if heard == ADOPTED_AFTER else None
    return AppliedEvidence(used=both, first=reading, heard=heard, proven=proven)


def start_anew(evidence: AppliedEvidence) -> AppliedEvidence:
    """Ask for two new reads: an update is sent now, or the ResourceManager may be another one."""
    return AppliedEvidence(used=evidence.used)
