# SPDX-License-Identifier: Apache-2.0
"""Decide, without any I/O, what one node's objects ask to be published, and put it into a Node."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, ORIGIN_ANNOTATION, THIRD_PARTY_ANNOTATION
from batch_resources.koordinator import publication
from batch_resources.koordinator.formula import NodeShape, calculate_batch
from batch_resources.koordinator.prepare import Offer, PreparedNode, origin_annotation, prepare
from batch_resources.koordinator.reservation import RESERVATION_ANNOTATION, annotated_reservation
from batch_resources.koordinator.strategy import Strategy
from batch_resources.quantities import parse_quantity, quantity_ceil
from batch_resources.resources import BatchResources
from lab.koordinator import node_metric
from lab.koordinator.api import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Record one write of a Node.

    Attributes:
        node: Name of the Node.
        sent_at: Monotonic seconds when the request left.
        answered_at: Monotonic seconds when the API server had taken it.
        resource_version: Version that it made.
        origin: What the origin annotation says since.
        allocatable: What kube-scheduler may book since; None when the keys are gone.
        reason: Why it was written, in words.
    """

    node: str
    sent_at: float
    answered_at: float
    resource_version: str
    origin: BatchResources
    allocatable: Offer | None
    reason: str


def calculate(
    node: JsonObject, metric: JsonObject | None, strategy: Strategy, *, now: datetime
) -> BatchResources | None:
    """Compute a node's batch resources; None means degraded.

    Only what the NodeMetric reports counts as high-priority work: the lab's pods are batch pods.

    Raises:
        KeyError: The NodeMetric has an update time and no usage: the node is to be left as it is.
    """
    reported = node_metric.update_time(metric)
    age_seconds = None if reported is None else (now - reported).total_seconds()
    if metric is None or publication.is_degraded(age_seconds, strategy):
        return None
    return calculate_batch(_shape(node), strategy, pods=(), load=node_metric.read_load(metric))


def prepare_node(node: JsonObject, calculated: BatchResources | None, ratio: Fraction | None) -> PreparedNode:
    """Subtract what third parties hold according to this version of the Node."""
    return prepare(
        calculated, third_party_text=_annotations(node).get(THIRD_PARTY_ANNOTATION), normalization_ratio=ratio
    )


def reason_to_write(
    node: JsonObject, prepared: PreparedNode, *, age_seconds: float | None, strategy: Strategy
) -> str | None:
    """Say why the node's status is to be written now; None when it is not."""
    if age_seconds is None:
        return "first write since start"
    if age_seconds > strategy.update_threshold_seconds:
        return "last write too long ago"
    allocatable = node.get("status", {}).get("allocatable") or {}
    if (BATCH_CPU in allocatable) != (BATCH_MEMORY in allocatable):
        return "only one of the two keys was there"
    old = None
    if BATCH_CPU in allocatable:
        old = BatchResources(
            cpu_milli=quantity_ceil(allocatable[BATCH_CPU]), memory_bytes=quantity_ceil(allocatable[BATCH_MEMORY])
        )
    new = None
    if prepared.allocatable is not None:
        new = BatchResources(
            cpu_milli=_ceil(prepared.allocatable.cpu_milli), memory_bytes=_ceil(prepared.allocatable.memory_bytes)
        )
    if publication.needs_status_update(old, new, age_seconds=age_seconds, strategy=strategy):
        return "allocatable moved enough"
    return None


def with_publication(node: JsonObject, prepared: PreparedNode) -> JsonObject:
    """Give a copy of the Node that carries origin and allocatable, ready to be put to its status."""
    changed = copy.deepcopy(node)
    annotations = changed["metadata"].setdefault("annotations", {})
    annotations[ORIGIN_ANNOTATION] = origin_annotation(annotations.get(ORIGIN_ANNOTATION), prepared.origin)
    status = changed.setdefault("status", {})
    for part in ("capacity", "allocatable"):
        quantities = status.setdefault(part, {})
        if prepared.allocatable is None:
            quantities.pop(BATCH_CPU, None)
            quantities.pop(BATCH_MEMORY, None)
        else:
            quantities.update(prepared.allocatable.to_quantities())
    return changed


def _shape(node: JsonObject) -> NodeShape:
    status = node.get("status", {})
    return NodeShape(
        capacity=_cpu_and_memory(status.get("capacity") or {}),
        allocatable=_cpu_and_memory(status.get("allocatable") or {}),
        annotated_reservation=annotated_reservation(_annotations(node).get(RESERVATION_ANNOTATION)),
    )


def capacity(node: JsonObject) -> BatchResources:
    """Give the plain capacity of a Node."""
    return _cpu_and_memory(node.get("status", {}).get("capacity") or {})


def _annotations(node: JsonObject) -> Mapping[str, str]:
    return node["metadata"].get("annotations") or {}


def _cpu_and_memory(quantities: Mapping[str, object]) -> BatchResources:
    return BatchResources(
        cpu_milli=_ceil(parse_quantity(quantities.get("cpu")) * 1000),
        memory_bytes=_ceil(parse_quantity(quantities.get("memory"))),
    )


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
