# SPDX-License-Identifier: Apache-2.0
"""Describe what the controller knows, as JSON-able structs for the HTTP API, the page and the command line.

A view is a copy made when somebody asks: it holds no reference into the loops' state. Units are in the names:
milli-cores and bytes on the Kubernetes side, vcores and MiB on the YARN side, ages in seconds by the monotonic
clock. None means unknown, never zero.
"""

from __future__ import annotations

import msgspec


class BatchView(msgspec.Struct, kw_only=True, frozen=True):
    """Give an amount in Koordinator's units."""

    cpu_milli: int
    memory_bytes: int


class YarnView(msgspec.Struct, kw_only=True, frozen=True):
    """Give an amount in YARN's units."""

    memory_mib: int
    vcores: int


class ReasonView(msgspec.Struct, kw_only=True, frozen=True):
    """Say why a node is not treated as usual: a constant of `observability.reasons` and a sentence."""

    reason: str
    message: str
    since_seconds: float


class OriginView(msgspec.Struct, kw_only=True, frozen=True):
    """Say what the origin annotation tells: known, absent, degraded, malformed or stale.

    `age_seconds` is the time since the NodeMetric's update time last changed; None where it cannot be read.
    """

    state: str
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    age_seconds: float | None = None
    detail: str = ""


class OrderView(msgspec.Struct, kw_only=True, frozen=True):
    """Give one order of an operator that is in force: drain, pause, cap or fix.

    `text` is what the annotation says; `left_seconds` the time until it ends (a drain: until its deadline).
    """

    order: str
    text: str
    left_seconds: float | None = None


class DrainView(msgspec.Struct, kw_only=True, frozen=True):
    """Say how far a drain is: draining, overdue, drained or released.

    `containers` is what the ResourceManagers count on the node; None while one of them cannot be read.
    """

    state: str
    containers: int | None = None
    since_seconds: float | None = None
    deadline_left_seconds: float | None = None


class PlannedView(msgspec.Struct, kw_only=True, frozen=True):
    """Say what would become of a node that is left alone, by an order to pause or in mode observe.

    `capacity` and `claim` are what the plan aims at; `writes` names what would be written now; `because` is paused,
    observing, or empty for a node that is written to as usual.
    """

    capacity: BatchView | None = None
    claim: BatchView | None = None
    writes: list[str] = msgspec.field(default_factory=list)
    because: str = ""


class GivingWayView(msgspec.Struct, kw_only=True, frozen=True):
    """Say how a NodeManager is asked to give back what it uses beyond its part.

    `stage` is none, soft, graded or forced. `over_origin_seconds` is how long the node has been over origin without a
    break; `deadline_in_seconds` is negative once the ResourceManager's deadline has passed. `next_stage` is empty, or
    `next_in_seconds` None, where nothing comes by time alone.
    """

    stage: str = "none"
    over_origin_seconds: float | None = None
    deadline_in_seconds: float | None = None
    next_stage: str = ""
    next_in_seconds: float | None = None


class NodeAgentView(msgspec.Struct, kw_only=True, frozen=True):
    """Say what the program beside a NodeManager last told.

    `lingering` is what containers hold that YARN does not count any more, `age_seconds` the age of that word (None
    before the first), `killed` how its last ask for room went.
    """

    drain: str = ""
    lingering: BatchView
    age_seconds: float | None = None
    error: str = ""
    killed: str = ""


class NodeManagerView(msgspec.Struct, kw_only=True, frozen=True):
    """Say what one cluster's ResourceManager knows about the NodeManager of a node.

    `node_id` is `host:port`. `used_settled` is False while the last reading of use may be momentary; `pending_send`
    is what was sent and is not confirmed yet.
    """

    cluster: str
    node_id: str
    state: str
    capacity: YarnView | None = None
    used: YarnView | None = None
    target: YarnView | None = None
    used_settled: bool = True
    read_age_seconds: float | None = None
    pending_send: YarnView | None = None
    giving_way: GivingWayView = msgspec.field(default_factory=GivingWayView)
    agent: NodeAgentView | None = None


class BoundaryView(msgspec.Struct, kw_only=True, frozen=True):
    """Say why the boundary of mode strict is where it is: a constant for each resource, and who waits for this node.

    `pods_wait_for` is what the pods need that are to be served here; `yarn_waits` is None where it is unknown.
    """

    why_cpu: str
    why_memory: str
    pods_wait_for: BatchView | None = None
    yarn_waits: bool | None = None


class NodeView(msgspec.Struct, kw_only=True, frozen=True):
    """Give the whole pipeline of one Kubernetes node.

    `claimed` is our entry as the Node carries it, `claim_wanted` what it should say; `window_minimum` the smallest
    origin of the growth window; `target`, `capacity` and `used` the sums over this node's NodeManagers in
    Koordinator's units. `mode` is the one by which the node is planned; `drain` is None for a node that nobody drains.
    """

    node: str
    managed: bool
    reasons: list[ReasonView] = msgspec.field(default_factory=list)
    origin: OriginView
    allocatable: BatchView | None = None
    reserve: BatchView | None = None
    others: BatchView | None = None
    kubernetes_requested: BatchView | None = None
    window_minimum: BatchView | None = None
    target: BatchView | None = None
    capacity: BatchView | None = None
    used: BatchView | None = None
    claimed: BatchView | None = None
    claim_wanted: BatchView | None = None
    boundary: BoundaryView | None = None
    node_managers: list[NodeManagerView] = msgspec.field(default_factory=list)
    mode: str = ""
    orders: list[OrderView] = msgspec.field(default_factory=list)
    drain: DrainView | None = None
    planned: PlannedView | None = None
    updated_age_seconds: float | None = None


class ClusterView(msgspec.Struct, kw_only=True, frozen=True):
    """Say how one YARN cluster answers. `nodes_by_state` counts the RM's nodes (RUNNING, LOST, ...)."""

    id: str
    addresses: list[str] = msgspec.field(default_factory=list)
    reachable: bool
    age_seconds: float | None = None
    error: str = ""
    nodes_by_state: dict[str, int] = msgspec.field(default_factory=dict)
    pending_updates: int = 0


class QueueView(msgspec.Struct, kw_only=True, frozen=True):
    """Give one queue. Capacities are fractions of the parent (0..1); `path` is dotted from `root`."""

    cluster: str
    path: str
    state: str
    capacity_fraction: float | None = None
    maximum_capacity_fraction: float | None = None
    used_fraction: float | None = None
    allocated: YarnView | None = None
    pending: YarnView | None = None
    containers_allocated: int | None = None
    containers_pending: int | None = None
    applications_running: int | None = None
    applications_pending: int | None = None
    age_seconds: float | None = None


class ConfigView(msgspec.Struct, kw_only=True, frozen=True):
    """Say which configuration is in force. `ok` is False while the file on disk is refused, `error` says why."""

    path: str = ""
    hash: str = ""
    ok: bool = True
    error: str = ""
    needs_restart: list[str] = msgspec.field(default_factory=list)


class ControllerView(msgspec.Struct, kw_only=True, frozen=True):
    """Say how this replica is. `ready_missing` holds one sentence for each thing the first complete view lacks.

    `stuck` holds one sentence for each loop that has not finished a cycle within its limit; it makes /healthz fail.
    `leader_identity` is who holds the lease as far as this replica has seen.
    """

    identity: str
    leader: bool
    term: int
    leader_identity: str = ""
    ready: bool
    ready_missing: list[str] = msgspec.field(default_factory=list)
    stuck: list[str] = msgspec.field(default_factory=list)
    kubernetes_age_seconds: float | None = None
    started_seconds: float = 0.0
    version: str = ""
    mode: str = ""
    config: ConfigView = msgspec.field(default_factory=ConfigView)
