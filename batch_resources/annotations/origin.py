# SPDX-License-Identifier: Apache-2.0
"""Read what koord-manager says a node has for batch work, before third parties are subtracted.

Shape: `{"resources":{"kubernetes.io/batch-cpu":"50k","kubernetes.io/batch-memory":"120Gi"}}` in the annotation
`node.koordinator.sh/originExtendedAllocatable` (Koordinator apis/slo/v1alpha1/node.go). A value that is not known
is never taken for zero: each way of not knowing has its own state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct

from batch_resources import quantities
from batch_resources.annotations import documents
from batch_resources.annotations.documents import DocumentError
from batch_resources.keys import BATCH_CPU, BATCH_MEMORY
from batch_resources.quantities import INT64_MAX, QuantityError
from batch_resources.resources import ZERO_BATCH, BatchResources

_FIELDS: Final = frozenset({"resources"})
_REMEMBERED_TEXTS: Final = 8192
_REMEMBERED_LENGTH: Final = 512
"""Longest text remembered, so that the memory used is bounded; Koordinator's have about 100 characters."""


class OriginState(StrEnum):
    """Say how much is known of origin."""

    KNOWN = "known"
    ABSENT = "absent"
    """No annotation, or one that does not name both batch resources."""
    DEGRADED = "degraded"
    """koord-manager took the batch resources away: it has no fresh metrics, or colocation is switched off."""
    MALFORMED = "malformed"


class OriginReading(Struct, frozen=True):
    """Hold origin as read; `resources` is set exactly for KNOWN and DEGRADED (then zero)."""

    state: OriginState
    resources: BatchResources | None
    detail: str
    """One sentence for people; empty for KNOWN."""


_ABSENT: Final = OriginReading(OriginState.ABSENT, None, "the annotation is absent")
_DEGRADED: Final = OriginReading(
    OriginState.DEGRADED, ZERO_BATCH, "origin is zero and the node's allocatable has no batch resources"
)


def read_origin(text: str | None, allocatable: Mapping[str, object]) -> OriginReading:
    """Read the origin annotation; never raises, whatever the text is.

    Args:
        text: the annotation's value, None when absent.
        allocatable: the node's `status.allocatable`; only the presence of the batch keys matters. koord-manager
            writes origin 0/0 both for "nothing left" and for "do not know"; only in the second case it removes
            the keys.

    Returns:
        The reading. Fractions are rounded down; negative values and values beyond 64 bits are MALFORMED.
    """
    if text is None:
        return _ABSENT
    try:
        reading = _read_remembered(text) if len(text) <= _REMEMBERED_LENGTH else _read(text)
    except (DocumentError, QuantityError) as error:
        return OriginReading(OriginState.MALFORMED, None, str(error))
    if reading.resources == ZERO_BATCH and BATCH_CPU not in allocatable and BATCH_MEMORY not in allocatable:
        return _DEGRADED
    return reading


def write_origin(before: str | None, resources: BatchResources) -> str:
    """Write the annotation as koord-manager does: other resources are kept, an unreadable text is replaced.

    Args:
        before: the annotation's old value.
        resources: milli-cores and bytes, whole numbers within 64 bits.

    Raises:
        QuantityError: a number is beyond 64 bits.
    """
    try:
        kept = documents.optional_object(documents.parse_object(before or "{}"), "resources", "annotation")
    except DocumentError:
        kept = {}
    written = {
        BATCH_CPU: quantities.format_decimal(resources.cpu_milli),
        BATCH_MEMORY: quantities.format_binary(resources.memory_bytes),
    }
    return documents.encode({"resources": kept | written})


def _read(text: str) -> OriginReading:
    document = documents.parse_object(text)
    documents.refuse_case_variants(document, _FIELDS, "annotation")
    listed = documents.optional_object(document, "resources", "annotation")
    missing = [key for key in (BATCH_CPU, BATCH_MEMORY) if key not in listed]
    if missing:
        return OriginReading(OriginState.ABSENT, None, f"the annotation does not name {' and '.join(missing)}")
    resources = BatchResources(cpu_milli=_amount(listed, BATCH_CPU), memory_bytes=_amount(listed, BATCH_MEMORY))
    return OriginReading(OriginState.KNOWN, resources, "")


@lru_cache(maxsize=_REMEMBERED_TEXTS)
def _read_remembered(text: str) -> OriginReading:
    """Read a text once: a Node is seen several times a minute, and its origin changes in few of these versions."""
    return _read(text)


def _amount(listed: Mapping[str, Any], key: str) -> int:
    try:
        amount = quantities.quantity_floor(listed[key])
    except QuantityError as error:
        raise QuantityError(f"{key}: {error}") from error
    if not 0 <= amount <= INT64_MAX:
        raise QuantityError(f"{key}: {quantities.shown(listed[key])} is outside 0 to {INT64_MAX}")
    return amount
