# SPDX-License-Identifier: Apache-2.0
"""Describe the per-node figures that are read from the controller's table only when somebody scrapes.

Setting 18 gauges for each of 5,000 nodes in every cycle would cost more than the planning does, so the controller
hands out rows and the exposition turns them into text. Amounts are `(cpu_milli, memory_bytes)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Amount = tuple[int, int]
"""Hold milli-cores and bytes."""

STAGES: Final[tuple[tuple[str, str], ...]] = (
    ("origin", "Batch capacity that Koordinator computed, before third parties are subtracted"),
    ("reserve", "Head-room that is withheld from YARN and never claimed"),
    ("others", "What other third parties with priority koord-batch hold"),
    ("kubernetes_requested", "What kube-scheduler has booked on the node in batch resources"),
    ("window_minimum", "Smallest origin seen in the growth window"),
    ("target", "What YARN should be offered, sum over the node's NodeManagers"),
    ("capacity", "What the ResourceManagers offer on the node, sum over its NodeManagers"),
    ("used", "What the ResourceManagers have handed out on the node, sum over its NodeManagers"),
    ("claimed", "What our entry of the third-party allocations says YARN holds"),
)
"""Name the pipeline's stages in their order, each with what it means."""


class PipelineRow(NamedTuple):
    """Hold one node's stages; an unknown stage is None and has no sample."""

    node: str
    origin: Amount | None = None
    reserve: Amount | None = None
    others: Amount | None = None
    kubernetes_requested: Amount | None = None
    window_minimum: Amount | None = None
    target: Amount | None = None
    capacity: Amount | None = None
    used: Amount | None = None
    claimed: Amount | None = None


class NodeManagerRow(NamedTuple):
    """Hold what one RM says about one NodeManager, in YARN's own units `(memory_mib, vcores)`."""

    cluster: str
    node_id: str
    node: str
    capacity: tuple[int, int] | None = None
    used: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsTable:
    """Hold the rows of one scrape.

    `reasons` counts nodes by the value of `observability.reasons.Reason`; absent reasons count as 0.
    """

    pipeline: Iterable[PipelineRow] = ()
    node_managers: Iterable[NodeManagerRow] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)
    managed_nodes: int = 0
    held_nodes: int = 0


TableSource = Callable[[], MetricsTable]
