# SPDX-License-Identifier: Apache-2.0
"""Turn calculated batch resources into what goes on the Node: the origin annotation and allocatable.

Origin is what was calculated, after the CPU normalization ratio and before third parties; allocatable is origin
minus what the third parties hold. Both use the texts of `batch_resources.quantities`. Source: Koordinator 1.8,
plugins/batchresource/plugin.go and apis/slo/v1alpha1/node.go.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from msgspec import Struct

from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, PRIORITY_BATCH
from batch_resources.koordinator.rounding import scaled_by_ratio
from batch_resources.quantities import QuantityError, format_binary, format_decimal, parse_quantity
from batch_resources.resources import ZERO_BATCH, BatchResources

_NANO = 10**9
_MILLI = 10**3


class Offer(Struct, frozen=True, kw_only=True):
    """Hold what kube-scheduler may book; a third party with a broken unit leaves a broken unit here.

    The API server accepts it and kube-scheduler rounds it up, so it has to be carried exactly.
    """

    cpu_milli: Fraction
    memory_bytes: Fraction

    def to_quantities(self) -> dict[str, str]:
        """Write both quantities as the API server does."""
        return {
            BATCH_CPU: _quantity_text(self.cpu_milli, binary=False),
            BATCH_MEMORY: _quantity_text(self.memory_bytes, binary=True),
        }


class PreparedNode(Struct, frozen=True, kw_only=True):
    """Hold what is to be on the Node; `allocatable` None means that both batch keys are to be gone."""

    origin: BatchResources
    allocatable: Offer | None


def prepare(
    calculated: BatchResources | None, *, third_party_text: str | None, normalization_ratio: Fraction | None = None
) -> PreparedNode:
    """Prepare a node's published state.

    Args:
        calculated: Result of the formula; None on a degraded, reset or failed node.
        third_party_text: Annotation `node.koordinator.sh/thirdPartyAllocations`. A text that cannot be read subtracts
            nothing: koord-manager fails open, and a stand-in for it must too.
        normalization_ratio: Above 1 it scales batch-cpu; anything else is ignored.

    Returns:
        Origin and allocatable; on a reset node origin is zero and third parties are not looked at.
    """
    if calculated is None:
        return PreparedNode(origin=ZERO_BATCH, allocatable=None)
    origin = calculated
    if normalization_ratio is not None and normalization_ratio > 1:
        origin = BatchResources(
            cpu_milli=scaled_by_ratio(calculated.cpu_milli, normalization_ratio),
            memory_bytes=calculated.memory_bytes,
        )
    held_cpu, held_memory = _third_party_sum(third_party_text)
    zero = Fraction(0)
    return PreparedNode(
        origin=origin,
        allocatable=Offer(
            cpu_milli=max(origin.cpu_milli - held_cpu, zero),
            memory_bytes=max(origin.memory_bytes - held_memory, zero),
        ),
    )


def origin_annotation(old_text: str | None, origin: BatchResources) -> str:
    """Write the origin annotation; other resources in a readable old text stay, an unreadable one is replaced."""
    resources = _resources_or_empty(old_text)
    resources[BATCH_CPU] = format_decimal(origin.cpu_milli)
    resources[BATCH_MEMORY] = format_binary(origin.memory_bytes)
    return json.dumps({"resources": resources}, separators=(",", ":"), sort_keys=True)


def _resources_or_empty(text: str | None) -> dict[str, Any]:
    try:
        document = json.loads(text or "{}")
        return dict(document.get("resources") or {})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}


def _third_party_sum(text: str | None) -> tuple[Fraction, Fraction]:
    """Add up the batch entries; nothing at all when any part of the text cannot be read."""
    nothing = Fraction(0), Fraction(0)
    if text is None:
        return nothing
    try:
        document = json.loads(text) or {}
        cpu, memory = nothing
        for entry in document.get("allocations") or []:
            quantities = {name: parse_quantity(value) for name, value in (entry.get("resources") or {}).items()}
            if entry.get("priority") == PRIORITY_BATCH:
                cpu += quantities.get(BATCH_CPU, Fraction(0))
                memory += quantities.get(BATCH_MEMORY, Fraction(0))
    except (ValueError, TypeError, AttributeError, RecursionError, QuantityError):
        return nothing
    return cpu, memory


def _quantity_text(value: Fraction, *, binary: bool) -> str:
    if value.denominator == 1:
        return format_binary(value.numerator) if binary else format_decimal(value.numerator)
    if (value * _MILLI).denominator == 1:
        return f"{(value * _MILLI).numerator}m"
    # Nothing finer than a nano unit survives in a quantity; the rest is rounded up there.
    return f"{-(-value.numerator * _NANO // value.denominator)}n"
