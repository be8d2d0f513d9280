# SPDX-License-Identifier: Apache-2.0
"""Decide when a fall of YARN's use is real.

Right after an update the ResourceManager can show a use of zero while every container still runs: its scheduler
takes the node out and in again. A rise therefore counts at once, per resource; a fall counts only when two reads,
at least one NodeManager heartbeat apart and with no update of ours outstanding, both show it. What a read shows was so
at some moment between its call and its answer: the later of the two must begin a heartbeat after the earlier has ended.
Else one slow answer, of a ResourceManager that has just started say, and the next one show the same short moment. After
a restart of the bridge nothing is known: `UseEvidence()` is not `complete`, and its owner must keep what was claimed
before. Times are monotonic seconds.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from batch_resources.resources import YarnResources


class UseReading(Struct, frozen=True, kw_only=True):
    """Hold one read of a node's use, from the call to the answer."""

    used: YarnResources
    began_at: float
    ended_at: float


class UseEvidence(Struct, frozen=True, kw_only=True):
    """Hold what may be believed of a node's use.

    Attributes:
        settled: the use to count with; None before the first read.
        complete: two reads a heartbeat apart were seen, so that `settled` may replace an older claim.
        pending: reads that differ from `settled` or wait for their second, oldest first.
    """

    settled: YarnResources | None = None
    complete: bool = False
    pending: tuple[UseReading, ...] = ()

    @property
    def is_falling(self) -> bool:
        """Tell whether a later read is needed to settle a lower use."""
        return bool(self.pending)


def observe_use(
    evidence: UseEvidence, reading: UseReading, *, heartbeat_seconds: float, has_outstanding_send: bool
) -> UseEvidence:
    """Take one read into account.

    Args:
        evidence: what was believed before.
        reading: the new read, begun after every read seen so far.
        heartbeat_seconds: interval of NodeManager heartbeats; so much lies at least between two reads.
        has_outstanding_send: an update of ours may still be on its way; then nothing falls and the wait starts anew.
    """
    settled = evidence.settled
    if settled == reading.used and evidence.complete:
        return evidence if not evidence.pending else replace(evidence, pending=())
    raised = reading.used if settled is None else settled.at_least(reading.used)
    if has_outstanding_send:
        return replace(evidence, settled=raised, pending=())
    pending = (*evidence.pending, reading)
    start = _latest_ended_by(pending, reading.began_at - heartbeat_seconds)
    if start is None:
        return replace(evidence, settled=raised, pending=pending)
    window = pending[start:]
    highest = reading.used
    for seen in window:
        highest = highest.at_least(seen.used)
    rest = () if all(seen.used == highest for seen in window) else window
    return UseEvidence(settled=highest, complete=True, pending=rest)


def forget_pending(evidence: UseEvidence) -> UseEvidence:
    """Start the wait for a fall anew: an update was sent, or the ResourceManager changed."""
    return replace(evidence, pending=()) if evidence.pending else evidence


def distrust(evidence: UseEvidence) -> UseEvidence:
    """Keep the use but ask for new proof of any fall: somebody else's updates may have disturbed what was read."""
    return replace(evidence, complete=False, pending=())


def _latest_ended_by(readings: tuple[UseReading, ...], moment: float) -> int | None:
    return max((index for index, reading in enumerate(readings) if reading.ended_at <= moment), default=None)
