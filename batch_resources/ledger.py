# SPDX-License-Identifier: Apache-2.0
"""Describe one node's ledger: what was observed, and what the rules say of it.

`NodeObservation` is a frozen picture of everything the planner may look at; `NodePlan` is what it decided, with every
stage on the way, so that metrics, the API and a person see the same numbers. Nothing here does I/O or knows a clock:
ages are given, moments are monotonic seconds.
"""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

from msgspec import Struct

from batch_resources.annotations.orders import NO_ORDERS, Orders
from batch_resources.annotations.origin import OriginReading
from batch_resources.dips import Dip
from batch_resources.giving_way import NOT_GIVING_WAY, UNTOLD, GivingWay, Levels, Overcommit
from batch_resources.growth import Window
from batch_resources.planner.boundary import Why
from batch_resources.planner.standing import Standing
from batch_resources.resources import ZERO_BATCH, BatchResources, YarnResources
from batch_resources.sends import Sends


class Hold(StrEnum):
    """Name why a node does not get what origin alone would give."""

    ORIGIN_ABSENT = "origin_absent"
    ORIGIN_DEGRADED = "origin_degraded"
    ORIGIN_MALFORMED = "origin_malformed"
    ORIGIN_STALE = "origin_stale"
    ORIGIN_ZERO_DOUBTED = "origin_zero_doubted"
    ORIGIN_RECOVERING = "origin_recovering"
    ORIGIN_AGE_UNKNOWN = "origin_age_unknown"
    THIRD_PARTY_MALFORMED = "third_party_malformed"
    POD_REQUEST_MALFORMED = "pod_request_malformed"
    FLOOR_OVERCOMMIT = "floor_overcommit"
    GROWTH_WINDOW = "growth_window"
    DEAD_BAND = "dead_band"
    CLUSTER_UNREACHABLE = "cluster_unreachable"
    CLUSTER_UNKNOWN = "cluster_unknown"
    NODE_MANAGER_NOT_RUNNING = "node_manager_not_running"
    NODE_MANAGER_UNMATCHED = "node_manager_unmatched"
    UNRECOGNIZED_BACKOFF = "unrecognized_backoff"
    FALL_OF_USE_UNPROVEN = "fall_of_use_unproven"
    FOREIGN_WRITER = "foreign_writer"
    PUBLICATION_AWAITED = "publication_awaited"
    SETTLING = "settling"
    FRESH_READ_AWAITED = "fresh_read_awaited"
    CAPACITY_FALL_UNPROVEN = "capacity_fall_unproven"
    EARLIER_LEADER_AWAITED = "earlier_leader_awaited"
    WATCH_LAG = "watch_lag"
    ORDER_MALFORMED = "order_malformed"
    CAPPED = "capped"
    FIXED = "fixed"
    FIX_EXCEEDS_BUDGET = "fix_exceeds_budget"
    DRAINING = "draining"
    DRAINED = "drained"
    DRAIN_OVERDUE = "drain_overdue"
    RELEASED = "released"
    PAUSED = "paused"
    OBSERVING = "observing"


class ManagerKey(Struct, frozen=True, kw_only=True, order=True):
    """Name one NodeManager: its YARN cluster and its node id (`host:port`; empty while unmatched)."""

    cluster: str
    node_id: str


class Running(Struct, frozen=True, kw_only=True):
    """Hold what runs on a node, and when the read that says so began."""

    holds: BatchResources
    read_at: float


class ManagerObservation(Struct, frozen=True, kw_only=True):
    """Hold what is known of one NodeManager of the node.

    Attributes:
        key: cluster and node id.
        reachable: the cluster's node list is fresh; otherwise everything about this NodeManager is frozen.
        accepts_updates: the ResourceManager takes updates for it (RUNNING or UNHEALTHY).
        capacity: the total that the ResourceManager last showed (C); None when it does not know the node.
        used: the settled use (Y), see `batch_resources.evidence`; None before the first read.
        used_is_proven: use was seen twice since this process started, so an older claim may fall to it.
        sends: updates that may still change C.
        weight: share of the node's YARN part, against the other clusters on it.
        proven: the larger of capacity and use that two reads have proven to be in force; mode strict lowers a claim by
            nothing else (see `batch_resources.applied`).
        outlives_earlier_leaders: its newest read began after every message of an earlier leader had died.
        retry_at: no update before this moment (back-off after an "unrecognized node" answer).
        cluster_is_known: a cluster of that id is configured.
        drains: it is to become empty: its capacity goes to the floor and stays there.
        overcommit: what our newest update left at the ResourceManager.
        levels: targets since the node has been over origin.
        running: what still runs there by the newest word of the node itself or of the ResourceManager.
    """

    key: ManagerKey
    reachable: bool
    accepts_updates: bool
    capacity: YarnResources | None
    used: YarnResources | None
    used_is_proven: bool
    sends: Sends = ()
    weight: int = 1
    retry_at: float = 0.0
    proven: YarnResources | None = None
    outlives_earlier_leaders: bool = False
    cluster_is_known: bool = True
    drains: bool = False
    overcommit: Overcommit = UNTOLD
    levels: Levels = ()
    running: Running | None = None


class Permissions(Struct, frozen=True, kw_only=True):
    """Hold what mode strict needs of a Node's history to know which permissions are still open.

    Attributes:
        allocatable: A as published; keys that are missing count as zero.
        settle_since: moment of the last fall of A, or of a gap in what was seen; None before the first version.
        requested: K by a consistent list of the node's pods and a Node that no version seen since has replaced.
        requested_at: when that read began.
        counter_is_ours: the newest write of the claim was made in this term of office.
        has_outstanding_patch: a patch of ours may still land.
        written_at: when the claim or its counter was last seen to change.
        watch_lag_seconds: how far the watch was behind lately; a scheduler's may be as far.
        can_be_forced: the Node carries the annotation whose removal makes koord-manager publish.
    """

    allocatable: BatchResources = ZERO_BATCH
    settle_since: float | None = None
    requested: BatchResources | None = None
    requested_at: float | None = None
    counter_is_ours: bool = False
    has_outstanding_patch: bool = False
    written_at: float | None = None
    watch_lag_seconds: float = 0.0
    can_be_forced: bool = False


class Demand(Struct, frozen=True, kw_only=True):
    """Hold who waits for capacity on a node.

    Attributes:
        kubernetes: what the batch pods need that are not scheduled and are to be served here.
        yarn_waits: applications wait for containers that this node could run; None when unknown.
    """

    kubernetes: BatchResources = ZERO_BATCH
    yarn_waits: bool | None = None


class NodeObservation(Struct, frozen=True, kw_only=True):
    """Hold what is known of one node.

    Attributes:
        node: name of the Node.
        origin: O as annotated.
        origin_age_seconds: time since koordlet's report last changed; None when no NodeMetric can be read.
        requested: K, what kube-scheduler has booked; None when a booked pod's request cannot be read.
        others: P, third parties of priority koord-batch that are not us; None when the annotation cannot be read.
        claimed: T, our entry as the Node shows it; None when there is none.
        claim_is_foreign: somebody else changed our entry; it is not touched.
        normalization_ratio: CPU normalisation of the node, only where vcores count physical cores.
        managers: the NodeManagers that live on the node, or did and may still hold something.
        window: origins of the growth window, this one included when it is known.
        unread_claim: the part of an older claim that belongs to NodeManagers whose use was never read (their cluster
            has been down since this process started); None when every use is known.
        release_is_proven: no NodeManager of ours can still run anything here, so an entry of ours may go.
        permissions: what is open, for mode strict.
        demand: who waits for capacity here, for mode strict.
        orders: what an operator ordered for the node and is in force now.
        is_abandoned: no NodeManager has been here for as long as a lost one is believed to hold its last use.
        dip: what kind of origin this is, since when, and what it was before; None where that is not followed.
        standing: where the boundary stood after the plan before, for cpu and memory; None for the first.
        lingering: what containers hold that YARN does not count any more; part of Y for everybody but YARN.
        lingering_is_known: otherwise it may be more, and no claim falls.
        over_since: since when `O < K + P + Y` has held without a break; None when it does not, or is not known.
    """

    node: str
    origin: OriginReading
    origin_age_seconds: float | None
    requested: BatchResources | None
    others: BatchResources | None
    claimed: BatchResources | None
    claim_is_foreign: bool = False
    normalization_ratio: Fraction | None = None
    managers: tuple[ManagerObservation, ...] = ()
    window: Window = ()
    unread_claim: BatchResources | None = None
    release_is_proven: bool = False
    permissions: Permissions = Permissions()
    demand: Demand = Demand()
    orders: Orders = NO_ORDERS
    is_abandoned: bool = False
    dip: Dip | None = None
    standing: tuple[Standing, ...] | None = None
    lingering: BatchResources = ZERO_BATCH
    lingering_is_known: bool = True
    over_since: float | None = None


class ClaimAction(StrEnum):
    """Say what is to become of our entry in the third-party allocations."""

    KEEP = "keep"
    WRITE = "write"
    REMOVE = "remove"
    FORGET = "forget"
    """Remove an order to release the node as well: nothing of ours is left then."""


class ManagerPlan(Struct, frozen=True, kw_only=True):
    """Hold the decision for one NodeManager.

    Attributes:
        target: C as it should become; None when nothing can be said (the RM does not know it).
        sends_update: an update is to be sent now.
        claim: its part of T.
        update: the value to send now, on the way to the target; None for the target itself.
        is_held_back: an update would be sent now, if the node were not left alone (see the node's holds).
        giving_way: the stage in which it gives back what it uses beyond its part, with the update's deadline.
        kill_ask: what is to be freed on the node itself now; None for nothing.
    """

    key: ManagerKey
    target: YarnResources | None
    sends_update: bool
    claim: BatchResources
    holds: tuple[Hold, ...] = ()
    update: YarnResources | None = None
    is_held_back: bool = False
    giving_way: GivingWay = NOT_GIVING_WAY
    kill_ask: BatchResources | None = None

    @property
    def next_value(self) -> YarnResources | None:
        """Give what an update sent now carries."""
        return self.target if self.update is None else self.update


class NodePlan(Struct, frozen=True, kw_only=True):
    """Hold the decision for one node, with the stages that led to it.

    Attributes:
        origin: O used for the decision; None when unknown.
        reserve: R, withheld from YARN.
        window_minimum: smallest origin of the growth window.
        budget: O' - P - R - K, floored at zero, O' being the window minimum; None when a part is unknown.
        claim: T as it should be; None when there is nothing to claim.
        claim_action: whether the annotation has to change for it.
        recheck_at: moment at which the passing of time alone may change the decision.
        over_since: since when the node has been over origin, see `NodeObservation`.
        wants_fresh_read: the next step lacks nothing but a fresh read of the Node and its pods.
        held_back: what would become of the annotation now, if the node were not left alone.
        demand: what the boundary was decided from; None outside of mode strict.
        boundary: why the boundary is where it is, for cpu and memory; empty where nothing is divided.
        standing: where the boundary stands now, for cpu and memory.
        forces_publication: the write of the claim is also to remove the annotation that wakes koord-manager.
    """

    node: str
    origin: BatchResources | None = None
    reserve: BatchResources = ZERO_BATCH
    window_minimum: BatchResources | None = None
    budget: BatchResources | None = None
    managers: tuple[ManagerPlan, ...] = ()
    claim: BatchResources | None = None
    claim_action: ClaimAction = ClaimAction.KEEP
    holds: tuple[Hold, ...] = ()
    recheck_at: float | None = None
    wants_fresh_read: bool = False
    held_back: ClaimAction = ClaimAction.KEEP
    demand: Demand | None = None
    boundary: tuple[Why, ...] = ()
    standing: tuple[Standing, ...] | None = None
    forces_publication: bool = False
    over_since: float | None = None
