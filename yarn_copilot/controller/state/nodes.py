# SPDX-License-Identifier: Apache-2.0
"""Reduce a Node to its annotations and names, parsed once per text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from sys import intern
from typing import Final

from msgspec import Struct

from batch_resources.annotations.orders import NO_ORDERS, Orders, read_orders
from batch_resources.annotations.origin import OriginReading, read_origin
from batch_resources.annotations.third_party import ThirdPartyAllocations, ThirdPartyError, read_third_party
from batch_resources.counting import Counter, read_counter
from batch_resources.demand.placement import Host, Taint, repelling_taints
from batch_resources.keys import (
    BATCH_CPU,
    BATCH_MEMORY,
    CLAIM_COUNTER_ANNOTATION,
    CLUSTER_ID_ANNOTATION,
    CPU_NORMALIZATION_RATIO_ANNOTATION,
    DRAIN_ANNOTATION,
    ENTRY_NAME,
    NODE_ID_ANNOTATION,
    ORIGIN_ANNOTATION,
    THIRD_PARTY_ANNOTATION,
)
from batch_resources.planner.policy import Mode, strictest
from batch_resources.quantities import QuantityError, quantity_ceil
from batch_resources.resources import BatchResources
from batch_resources.units import parse_normalization_ratio
from yarn_copilot.controller.state.selectors import LabelSelector
from yarn_copilot.kube.model import Node

_REMEMBERED_TEXTS: Final = 8192
_REMEMBERED_LENGTH: Final = 512
"""Longest annotation remembered, characters, so that the memory used is bounded."""


class NodeFacts(Struct, frozen=True, kw_only=True):
    """Hold what the ledger needs of one version of a Node.

    Attributes:
        version: resourceVersion as a number; 0 where it is not one.
        third_party_text: the annotation as stored; None where absent.
        others: P; None when the annotation cannot be read, `third_party_error` says why.
        claimed: our entry; None where there is none.
        counter: what our writes of the entry count; `counter_text` as stored, None where absent.
        host_daemon: the Node matches the selector of host-daemon NodeManagers.
        orders: what an operator ordered; `drain_text` is that one's text as stored, None where absent.
        mapped_labels: keys and values of the labels that YARN is told about, those present.
        mode: the mode that the Node's labels ask for; None where they ask for none.
        is_cordoned: kube-scheduler places nothing new on the Node.
        host: what the constraints of pods are compared with.
        has_ratio: the Node carries the CPU normalisation ratio, used or not.
    """

    name: str
    uid: str
    version: int
    origin: OriginReading
    allocatable: BatchResources | None
    third_party_text: str | None
    third_party_error: str = ""
    others: BatchResources | None
    claimed: BatchResources | None
    counter: Counter = Counter()
    counter_text: str | None = None
    normalization_ratio: Fraction | None = None
    addresses: tuple[str, ...] = ()
    node_id: str | None = None
    cluster: str | None = None
    host_daemon: bool = False
    orders: Orders = NO_ORDERS
    drain_text: str | None = None
    is_cordoned: bool = False
    mapped_labels: tuple[tuple[str, str], ...] = ()
    mode: Mode | None = None
    host: Host
    has_ratio: bool = False


class NodeReducer:
    """Turn a Node into `NodeFacts`."""

    def __init__(
        self,
        host_selector: LabelSelector | None,
        *,
        physical_cpu: bool,
        modes: Iterable[tuple[LabelSelector, Mode]] = (),
        mapped_labels: Iterable[str] = (),
    ) -> None:
        """Take the selector of Nodes with host daemons, the CPU unit, modes by labels, and label keys to keep."""
        self._mapped_labels = tuple(mapped_labels)
        self._modes = tuple(modes)
        self._host_selector = host_selector
        self._physical_cpu = physical_cpu

    def __call__(self, node: Node) -> NodeFacts:
        """Reduce one Node; never raises on what others wrote into it."""
        annotations = node.metadata.annotations
        third_party_text = annotations.get(THIRD_PARTY_ANNOTATION)
        others, claimed, error = read_shares(third_party_text)
        ratio = parse_normalization_ratio(annotations.get(CPU_NORMALIZATION_RATIO_ANNOTATION))
        version = node.metadata.resourceVersion
        return NodeFacts(
            name=node.metadata.name,
            uid=node.metadata.uid,
            version=int(version) if version.isascii() and version.isdigit() else 0,
            origin=read_origin(annotations.get(ORIGIN_ANNOTATION), node.status.allocatable),
            allocatable=_allocatable(node),
            third_party_text=third_party_text,
            third_party_error=error,
            others=others,
            claimed=claimed,
            counter=read_counter(annotations.get(CLAIM_COUNTER_ANNOTATION)),
            counter_text=annotations.get(CLAIM_COUNTER_ANNOTATION),
            normalization_ratio=ratio if self._physical_cpu else None,
            addresses=tuple(address.address for address in node.status.addresses),
            node_id=annotations.get(NODE_ID_ANNOTATION),
            cluster=annotations.get(CLUSTER_ID_ANNOTATION),
            host_daemon=self._host_selector is not None and self._host_selector.matches(node.metadata.labels),
            orders=read_orders(annotations),
            drain_text=annotations.get(DRAIN_ANNOTATION),
            is_cordoned=node.spec.unschedulable,
            mapped_labels=tuple(
                (key, node.metadata.labels[key]) for key in self._mapped_labels if key in node.metadata.labels
            ),
            mode=strictest(mode for selector, mode in self._modes if selector.matches(node.metadata.labels)),
            host=_host(node),
            has_ratio=CPU_NORMALIZATION_RATIO_ANNOTATION in annotations,
        )


def _host(node: Node) -> Host:
    """Keep labels and taints; what thousands of Nodes have in common is kept once."""
    taints = tuple(_taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints)
    return Host(
        name=node.metadata.name,
        labels={intern(key): intern(value) for key, value in node.metadata.labels.items()},
        taints=repelling_taints(taints, is_cordoned=node.spec.unschedulable),
    )


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def _taint(key: str, value: str, effect: str) -> Taint:
    return Taint(key, value, effect)


def read_shares(text: str | None) -> tuple[BatchResources | None, BatchResources | None, str]:
    """Read P and T from the third-party annotation; on an error both are None and the last item says why.

    A Node is seen several times a minute, and most carry the same short text: it is read once.
    """
    is_short = text is None or len(text) <= _REMEMBERED_LENGTH
    return _read_shares_remembered(text) if is_short else _read_shares(text)


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def _read_shares_remembered(text: str | None) -> tuple[BatchResources | None, BatchResources | None, str]:
    return _read_shares(text)


def _read_shares(text: str | None) -> tuple[BatchResources | None, BatchResources | None, str]:
    try:
        allocations: ThirdPartyAllocations = read_third_party(text)
        return allocations.others(ENTRY_NAME), allocations.entry(ENTRY_NAME), ""
    except ThirdPartyError as problem:
        return None, None, str(problem)


def _allocatable(node: Node) -> BatchResources | None:
    allocatable = node.status.allocatable
    if BATCH_CPU not in allocatable or BATCH_MEMORY not in allocatable:
        return None
    try:
        return BatchResources(
            cpu_milli=quantity_ceil(allocatable[BATCH_CPU]), memory_bytes=quantity_ceil(allocatable[BATCH_MEMORY])
        )
    except QuantityError:
        return None


class NodeTable:
    """Be the sink of the node watch: the newest version of every Node."""

    def __init__(self, on_changed: Callable[[NodeFacts | None, NodeFacts | None], None]) -> None:
        """Take the callback for a Node that changed: facts before and after, None where there are none."""
        self._on_changed = on_changed
        self._facts: dict[str, NodeFacts] = {}
        self.on_version: Callable[[NodeFacts], None] = lambda facts: None
        """Told every version that the watch delivers, in order, also those that are older than what is known."""
        self.on_gap: Callable[[], None] = lambda: None
        """Told before a new list: versions may have been missed."""

    def replaced(self, items: dict[str, NodeFacts]) -> None:
        """Take a complete list; whatever is missing is gone.

        A list that is older as a whole than what is known comes from a store that was restored from a backup (or it
        was overtaken by a patch of ours, whose version the watch delivers next): it counts.
        """
        self.on_gap()
        for name in [name for name in self._facts if name not in items]:
            self.removed(name)
        known = max((facts.version for facts in self._facts.values()), default=0)
        went_back = max((facts.version for facts in items.values()), default=0) < known
        for name, facts in items.items():
            if went_back:
                self._store(name, facts)
                self.on_version(facts)
            else:
                self.upserted(name, facts)

    def upserted(self, key: str, item: NodeFacts) -> None:
        """Take one version of a Node from the watch."""
        self.learned(key, item)
        self.on_version(item)

    def learned(self, key: str, item: NodeFacts) -> None:
        """Take a version from anywhere; one older than the one known (our own patch was faster) is dropped."""
        before = self._facts.get(key)
        if before is not None and before.uid == item.uid and 0 < item.version < before.version:
            return
        self._store(key, item)

    def _store(self, key: str, item: NodeFacts) -> None:
        before = self._facts.get(key)
        self._facts[key] = item
        self._on_changed(before, item)

    def removed(self, key: str) -> None:
        """Forget a Node."""
        before = self._facts.pop(key, None)
        if before is not None:
            self._on_changed(before, None)

    def unavailable(self, reason: str) -> None:
        """Ignore that the list is refused for now: the views grow old, and that is what counts."""

    def malformed(self, key: str, reason: str) -> None:
        """Keep the last facts of a Node that cannot be decoded."""

    def get(self, name: str) -> NodeFacts | None:
        """Give the newest facts of a Node."""
        return self._facts.get(name)

    def all(self) -> Iterable[NodeFacts]:
        """Give the facts of every Node."""
        return self._facts.values()

    def __len__(self) -> int:
        return len(self._facts)
