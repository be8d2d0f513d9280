# SPDX-License-Identifier: Apache-2.0
"""Describe one node's ledger: what was observed, and what the rules say of it.

`NodeObservation` is a frozen picture of everything the planner may look at; `NodePlan` is what it decided, with every
stage on the way, so that metrics, the API and a person see the same numbers. Nothing here does I/O or knows a clock:
ages are given, moments are monotonic seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from batch_resources.annotations.origin import OriginReading
from batch_resources.growth import Window
from batch_resources.resources import ZERO_BATCH, BatchResources, YarnResources
from batch_resources.sends import Sends


class Hold(StrEnum):
    """Name why a node does not get what origin alone would give."""

    ORIGIN_ABSENT = "origin_absent"
    ORIGIN_DEGRADED = "origin_degraded"
    ORIGIN_MALFORMED = "origin_malformed"
    ORIGIN_STALE = "origin_stale"
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


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ManagerKey:
    """Name one NodeManager: its YARN cluster and its node id (`host:port`; empty while unmatched)."""

    cluster: str
    node_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerObservation:
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
        retry_at: no update before this moment (back-off after an "unrecognized node" answer).
        cluster_is_known: a cluster of that id is configured.
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
    cluster_is_known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObservation:
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


class ClaimAction(StrEnum):
    """Say what is to become of our entry in the third-party allocations."""

    KEEP = "keep"
    WRITE = "write"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerPlan:
    """Hold the decision for one NodeManager; `target` None means that nothing can be said (RM does not know it)."""

    key: ManagerKey
    target: YarnResources | None
    sends_update: bool
    claim: BatchResources
    holds: tuple[Hold, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """Hold the decision for one node, with the stages that led to it.

    Attributes:
        origin: O used for the decision; None when unknown.
        reserve: R, withheld from YARN.
        window_minimum: smallest origin of the growth window.
        budget: O' - P - R - K, floored at zero, O' being the window minimum; None when a part is unknown.
        claim: T as it should be; None when there is nothing to claim.
        claim_action: whether the annotation has to change for it.
        recheck_at: moment at which the passing of time alone may change the decision.
    """

    node: str
    origin: BatchResources | None = None
    reserve: BatchResources = ZERO_BATCH
    window_minimum: BatchResources | None = None
    budget: BatchResources | None = None
    managers: tuple[ManagerPlan, ...] = ()
    claim: BatchResources | None = None
    claim_action: ClaimAction = ClaimAction.KEEP
    holds: tuple[Hold, ...] = field(default=())
    recheck_at: float | None = None
