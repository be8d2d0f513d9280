# SPDX-License-Identifier: Apache-2.0
"""Read what a node keeps for itself.

Two sources: the kubelet (capacity minus allocatable) and annotation `node.koordinator.sh/reservation`, shaped
`{"resources":{"cpu":"2","memory":"5Gi"},"reservedCPUs":"0-5,8"}`. Source: Koordinator 1.8, pkg/util/node.go.
"""

from __future__ import annotations

import json

from batch_resources.quantities import QuantityError, parse_quantity
from batch_resources.resources import ZERO_BATCH, BatchResources

RESERVATION_ANNOTATION = "node.koordinator.sh/reservation"
_MAX_CPU_ID = 1 << 20


def kubelet_reservation(capacity: BatchResources, allocatable: BatchResources) -> BatchResources:
    """Give what the kubelet holds back; an amplified allocatable above the capacity counts as nothing."""
    return (capacity - allocatable).floored()


def reserved_cpu_count(text: str) -> int:
    """Count the CPUs of a Linux cpuset list such as "0-5,8".

    Raises:
        ValueError: The text is not such a list.
    """
    ids: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        low = int(first)
        high = int(last) if dash else low
        if not 0 <= low <= high <= _MAX_CPU_ID:
            raise ValueError(f"cpuset part {part[:64]!r} is not a range of CPU ids")
        ids.update(range(low, high + 1))
    return len(ids)


def annotated_reservation(text: str | None) -> BatchResources:
    """Read the reservation annotation; whatever cannot be read reserves nothing, as koord-manager decides too.

    A CPU list replaces a CPU quantity.
    """
    if text is None:
        return ZERO_BATCH
    try:
        document = json.loads(text)
        resources = document.get("resources") or {}
        cpu = parse_quantity(resources.get("cpu")) * 1000
        memory = parse_quantity(resources.get("memory"))
        if document.get("reservedCPUs"):
            cpu = parse_quantity(reserved_cpu_count(document["reservedCPUs"])) * 1000
    except (ValueError, AttributeError, TypeError, RecursionError, QuantityError):
        return ZERO_BATCH
    return BatchResources(
        cpu_milli=-(-cpu.numerator // cpu.denominator), memory_bytes=-(-memory.numerator // memory.denominator)
    )
