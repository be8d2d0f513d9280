# SPDX-License-Identifier: Apache-2.0
"""Build ledger values for tests, with defaults that make a healthy node."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from batch_resources.annotations.origin import OriginReading, OriginState
from batch_resources.growth import observe_origin
from batch_resources.ledger import ManagerKey, ManagerObservation, NodeObservation, Permissions
from batch_resources.planner.policy import Policy
from batch_resources.resources import ZERO_BATCH, BatchResources, YarnResources
from batch_resources.units import UnitModel

GIB = 1 << 30
NOW = 1000.0


def batch(cpu_milli: int, memory_gib: float) -> BatchResources:
    """Give an amount in milli-cores and GiB."""
    return BatchResources(cpu_milli=cpu_milli, memory_bytes=int(memory_gib * GIB))


def yarn(vcores: int, memory_mib: int) -> YarnResources:
    """Give an amount in vcores and MiB."""
    return YarnResources(memory_mib=memory_mib, vcores=vcores)


POLICY = Policy(
    units=UnitModel(milli_cores_per_vcore=1000),
    floor=yarn(1, 1024),
    growth_window_seconds=0.0,
    origin_max_age_seconds=900,
)

SETTLED = Permissions(
    allocatable=ZERO_BATCH,
    settle_since=NOW - 60,
    requested=ZERO_BATCH,
    requested_at=NOW - 0.1,
    counter_is_ours=True,
    written_at=NOW - 5,
)
"""Lets capacity grow in mode strict: settled, read afresh, and the claim's counter is of this term."""


def policy(**changes: Any) -> Policy:
    """Give the default policy with changes."""
    return replace(POLICY, **changes)


def manager(cluster: str = "default", node_id: str = "nm-1:8041", **changes: Any) -> ManagerObservation:
    """Give a RUNNING NodeManager with 1 vcore / 1024 MiB of capacity, no use, and proof of it."""
    healthy = ManagerObservation(
        key=ManagerKey(cluster=cluster, node_id=node_id),
        reachable=True,
        accepts_updates=True,
        capacity=yarn(1, 1024),
        used=yarn(0, 0),
        used_is_proven=True,
    )
    return replace(healthy, **changes)


def node(amount: BatchResources | None = None, /, *managers: ManagerObservation, **changes: Any) -> NodeObservation:
    """Give a node with known origin, no pods, no third parties, and the given NodeManagers."""
    amount = amount if amount is not None else batch(20000, 64)
    known = OriginReading(state=OriginState.KNOWN, resources=amount, detail="")
    healthy = NodeObservation(
        node="node-1",
        origin=known,
        origin_age_seconds=10.0,
        requested=ZERO_BATCH,
        others=ZERO_BATCH,
        claimed=None,
        managers=managers or (manager(),),
        window=observe_origin((), amount, now=NOW, length_seconds=0.0),
    )
    return replace(healthy, **changes)


def unknown_origin(state: OriginState) -> OriginReading:
    """Give an origin that tells nothing."""
    return OriginReading(state=state, resources=None, detail="why")
