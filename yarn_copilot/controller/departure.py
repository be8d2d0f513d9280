# SPDX-License-Identifier: Apache-2.0
"""Decide when a NodeManager that stopped, moved or lost its pod no longer holds anything.

A claim must outlive its containers, so "not seen" is never "gone": a NodeManager leaves the ledger when its use was
proven to be zero, when it signed off in order, or when it has been lost for the configured time.
"""

from __future__ import annotations

from collections.abc import Callable

from batch_resources.evidence import UseEvidence
from batch_resources.ledger import ManagerKey
from batch_resources.resources import ZERO_YARN
from yarn_copilot.controller.memory import ManagerMemory, NodeMemory
from yarn_copilot.hadoop.model import NodeReport, NodeState

_SIGNED_OFF = frozenset({NodeState.SHUTDOWN, NodeState.DECOMMISSIONED})
_SIGN_OFF_SECONDS = 2.0
"""A NodeManager that signs off kills its containers first; this covers their last moments."""


class Departures:
    """Let NodeManagers leave a node's memory."""

    def note_presence(self, memory: NodeMemory, *, now: float) -> None:
        """Note whether the node carries a NodeManager at all."""
        if memory.managers:
            memory.empty_since = None
            memory.release_proven = False
        elif memory.empty_since is None:
            memory.empty_since = now

    def settle(
        self,
        memory: NodeMemory,
        report_of: Callable[[ManagerMemory], NodeReport | None],
        reachable_since: Callable[[ManagerMemory], float | None],
        lost_hold_seconds: float,
        *,
        now: float,
    ) -> list[ManagerKey]:
        """Drop the NodeManagers that hold nothing any more, and decide whether our entry may go.

        Args:
            memory: the node.
            report_of: gives the ResourceManager's newest report of a NodeManager.
            reachable_since: gives the moment since which the NodeManager's cluster has been read without a break;
                None while it cannot be read, and then nothing is over.
            lost_hold_seconds: how long what is lost is believed to hold its last use.
            now: monotonic seconds.

        Returns:
            The keys that left.
        """
        gone: list[ManagerKey] = []
        for key, manager in list(memory.managers.items()):
            if manager.not_running_since is None and manager.candidate is not None:
                continue  # it is there and runs, as most do
            since = reachable_since(manager)
            if since is None:
                continue
            if self._is_over(manager, self._end(manager, report_of(manager), lost_hold_seconds, since), now):
                if manager.candidate is None:
                    del memory.managers[key]
                    gone.append(key)
                else:
                    manager.evidence = UseEvidence(settled=ZERO_YARN, complete=True)
        if memory.managers:
            return gone
        if gone:
            memory.empty_since = now
            memory.release_proven = True
        # Found with our entry and no NodeManager, after a restart say: nobody knows what it held.
        if memory.empty_since is not None and now - memory.empty_since >= lost_hold_seconds:
            memory.release_proven = True
        return gone

    def next_moment(
        self,
        memory: NodeMemory,
        report_of: Callable[[ManagerMemory], NodeReport | None],
        reachable_since: Callable[[ManagerMemory], float | None],
        lost_hold_seconds: float,
    ) -> float | None:
        """Give the moment at which the next of these waits ends; None when nothing waits."""
        moments = []
        for manager in memory.managers.values():
            if manager.not_running_since is None:
                continue
            since = reachable_since(manager)
            end = None if since is None else self._end(manager, report_of(manager), lost_hold_seconds, since)
            if end is not None:
                moments.append(end)
        if memory.empty_since is not None and not memory.release_proven:
            moments.append(memory.empty_since + lost_hold_seconds)
        return min(moments, default=None)

    @staticmethod
    def _end(
        manager: ManagerMemory, report: NodeReport | None, lost_hold_seconds: float, reachable_since: float
    ) -> float | None:
        """Give the moment at which a NodeManager that does not run holds nothing; None while it runs."""
        since = manager.not_running_since
        if since is None:
            return None
        if manager.node_id is None:
            # Never listed: only a ResourceManager that was there all the time can have told so.
            since = max(since, reachable_since)
        signed_off = report is not None and report.state in _SIGNED_OFF
        return since + (_SIGN_OFF_SECONDS if signed_off else lost_hold_seconds)

    @staticmethod
    def _is_over(manager: ManagerMemory, end: float | None, now: float) -> bool:
        if end is not None:
            return now >= end
        evidence = manager.evidence
        return manager.candidate is None and evidence.complete and evidence.settled == ZERO_YARN
