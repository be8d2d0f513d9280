# SPDX-License-Identifier: Apache-2.0
"""Remember, per node and NodeManager, what no outside system can tell again.

All of it is lost with the process, and every rule is safe when it is: an empty memory only makes claims fall later and
capacity grow later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from batch_resources.applied import AppliedEvidence, start_anew
from batch_resources.dips import Dip
from batch_resources.evidence import UseEvidence, distrust, forget_pending
from batch_resources.giving_way import Levels, Overcommit, observe_target
from batch_resources.growth import Window
from batch_resources.ledger import ManagerKey, NodePlan
from batch_resources.planner.policy import Mode, Policy
from batch_resources.planner.standing import Standing
from batch_resources.resources import ZERO_BATCH, BatchResources
from batch_resources.sends import Sends
from yarn_copilot.controller.identity.matching import Candidate
from yarn_copilot.controller.permissions import PermissionMemory
from yarn_copilot.hadoop.model import NodeId

SILENT_AFTER = 3
"""Reads of an agent that have to fail one after another before its silence is told."""
MAX_POSSIBLE = 64
"""Entries remembered whose patch was lost; an outage of days must not collect more."""


@dataclass(slots=True, kw_only=True)
class AgentMemory:
    """Hold what the program beside a NodeManager last said.

    Attributes:
        known_since: monotonic moment since which there is such a program; None while there is none.
        read_at: when the newest read that succeeded began.
        lingering: what is left of containers that YARN does not count any more.
        running: what the containers hold that have not ended; None where it does not say.
        drain: active, draining or drained; empty before the first read.
        error: why the last read failed; empty when it did not.
        failures: reads that failed since the last success.
        retry_at: monotonic moment before which it is not asked again.
        kill_retry_at: monotonic moment before which it is not asked to kill again.
        killed: what it was last made to free, for people.
    """

    known_since: float | None = None
    read_at: float | None = None
    lingering: BatchResources = ZERO_BATCH
    running: BatchResources | None = None
    drain: str = ""
    error: str = ""
    failures: int = 0
    retry_at: float = 0.0
    kill_retry_at: float = 0.0
    killed: str = ""

    def note_presence(self, is_there: bool, *, now: float) -> None:
        """Note whether there is such a program now; what one said that is gone is still believed for a while."""
        if is_there and self.known_since is None:
            self.known_since = now

    def believed(self, *, now: float, hold_seconds: float) -> tuple[BatchResources, bool]:
        """Give what lingers, and whether that is known; after a silence of `hold_seconds` nothing is believed."""
        if self.known_since is None:
            return ZERO_BATCH, True
        since = self.known_since if self.read_at is None else self.read_at
        if now - since >= hold_seconds:
            return ZERO_BATCH, True
        return self.lingering, self.read_at is not None


@dataclass(slots=True, kw_only=True)
class ManagerMemory:
    """Hold what is known of one NodeManager beside the RM's newest report.

    Attributes:
        node_id: parsed form of the key's node id; None while the RM does not list the NodeManager.
        candidate: pod or Node that it stands for; None when that is gone and only its use is still watched.
        applied: what is proven to be in force, for mode strict.
        is_strict: its node is planned by mode strict; `strict_since` is the moment at which that began here, None where
            it has always been so.
        incarnation: which ResourceManager the evidence comes from.
        not_running_since: monotonic moment since which its use is unknown; None while it is known.
        overcommit: what our newest update left at the ResourceManager.
        levels: targets since the node has been over origin.
        agent: what the program beside it said.
        unrecognized_count: consecutive "unrecognized node" answers, for the back-off.
    """

    key: ManagerKey
    node_id: NodeId | None
    candidate: Candidate | None
    evidence: UseEvidence = field(default_factory=UseEvidence)
    sends: Sends = ()
    applied: AppliedEvidence = field(default_factory=AppliedEvidence)
    is_strict: bool = False
    strict_since: float | None = None
    incarnation: int = 0
    not_running_since: float | None = None
    overcommit: Overcommit = field(default_factory=Overcommit)
    levels: Levels = ()
    agent: AgentMemory = field(default_factory=AgentMemory)
    unrecognized_count: int = 0
    retry_at: float = 0.0

    def restart_evidence(self) -> None:
        """Ask for two new reads before use, or a claim, may fall."""
        self.evidence = forget_pending(self.evidence)
        self.applied = start_anew(self.applied)

    def set_strict(self, is_strict: bool, *, now: float) -> None:
        """Take over the mode of the node; what mode strict needs to know begins anew where it was not kept."""
        if is_strict and not self.is_strict:
            self.strict_since = now
            self.applied = AppliedEvidence()
        self.is_strict = is_strict

    def distrust_use(self) -> None:
        """Ask for two new reads before use may fall below the claim that is found."""
        self.evidence = distrust(self.evidence)
        self.applied = start_anew(self.applied)


@dataclass(slots=True, kw_only=True)
class ClaimMemory:
    """Hold what this process wrote into our entry, to tell a foreign writer from ourselves.

    Attributes:
        written: our last entry that landed; None when it was removed or never written.
        written_version: resourceVersion of the Node after that write; 0 before the first write of this term.
        possible: entries whose patch is in flight or ended without an answer; any of them may show up.
        foreign_since: monotonic moment of the last change by somebody else; None when there is none.
        failures: consecutive patches that failed, for the back-off.
        retry_at: monotonic moment before which no patch is tried, however often the node is planned.
    """

    written: BatchResources | None = None
    written_version: int = 0
    possible: tuple[BatchResources | None, ...] = ()
    foreign_since: float | None = None
    failures: int = 0
    retry_at: float = 0.0

    def note_sent(self, claimed: BatchResources | None) -> tuple[BatchResources | None, ...]:
        """Note that an entry is on its way; a repeated one is remembered once, of very many the newest.

        Returns:
            What was possible before, to go back to when this patch is refused for certain: an earlier one with the
            same entry may still have landed.
        """
        before = self.possible
        rest = tuple(value for value in self.possible if value != claimed)
        self.possible = (*rest, claimed)[-MAX_POSSIBLE:]
        return before

    def note_landed(self, claimed: BatchResources | None, version: int) -> None:
        """Note that an entry of ours is on the Node."""
        self.written, self.written_version = claimed, version
        self.failures, self.retry_at = 0, 0.0

    def is_ours(self, claimed: BatchResources | None, version: int) -> bool:
        """Tell whether an entry seen in a newer version of the Node can be ours, and learn from it if so."""
        if claimed in self.possible:
            self.note_landed(claimed, version)
            return True
        return claimed == self.written


@dataclass(slots=True, kw_only=True)
class NodeMemory:
    """Hold what is remembered of one node.

    Attributes:
        name: the Node's name.
        mode: how the node is planned.
        uid: identity of the Node object; another one under the same name starts anew.
        unread_claim: part of the claim found at the start that NodeManagers hold which could not be read yet.
        empty_since: monotonic moment since which no NodeManager has been on the node.
        release_proven: every NodeManager that left was seen to hold nothing.
        changed_at: monotonic moment at which the inputs of the next plan first changed.
        dip: what kind of origin the Node shows, and since when.
        standing: where the boundary of mode strict stood after the newest plan.
        over_since: monotonic moment since which the node has been over origin without a break.
        origin_changed_at: monotonic moment at which origin was last seen to change, for the propagation figures.
    """

    name: str
    uid: str
    mode: Mode = Mode.SHARED
    window: Window = ()
    managers: dict[ManagerKey, ManagerMemory] = field(default_factory=dict)
    claim: ClaimMemory = field(default_factory=ClaimMemory)
    permissions: PermissionMemory = field(default_factory=PermissionMemory)
    plan: NodePlan | None = None
    planned_at: float | None = None
    unread_claim: BatchResources | None = None
    empty_since: float | None = None
    release_proven: bool = False
    over_since: float | None = None
    origin_changed_at: float | None = None
    standing: tuple[Standing, ...] | None = None
    dip: Dip | None = None

    def lingering(self, *, now: float, hold_seconds: float) -> tuple[BatchResources, bool]:
        """Add up what lingers on the node; known when every program beside a NodeManager has said so."""
        total, is_known = ZERO_BATCH, True
        for manager in self.managers.values():
            amount, known = manager.agent.believed(now=now, hold_seconds=hold_seconds)
            total, is_known = total + amount, is_known and known
        return total, is_known

    def note_plan(self, plan: NodePlan, policy: Policy, *, now: float) -> None:
        """Keep a plan, and its targets while the node is over origin."""
        self.plan, self.planned_at, self.standing = plan, now, plan.standing
        for decided in plan.managers:
            manager = self.managers.get(decided.key)
            if manager is None:
                continue
            if self.over_since is None:
                manager.levels = ()
            elif decided.target is not None:
                manager.levels = observe_target(
                    manager.levels, decided.target, now=now, length_seconds=policy.giving_way.grace_seconds
                )
