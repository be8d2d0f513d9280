# SPDX-License-Identifier: Apache-2.0
"""Read and write what schedulers other than Kubernetes hold on a node.

Shape of `node.koordinator.sh/thirdPartyAllocations` (Koordinator apis/slo/v1alpha1/node.go):
`{"allocations":[{"name":"hadoop-yarn","priority":"koord-batch","resources":{"kubernetes.io/batch-cpu":"10k",...}}]}`.
koord-manager sums the entries whose priority is exactly `koord-batch`. If it cannot read one part of the text it
subtracts nothing at all, so a text that it would not read is an error here and is never written over: it may hold
somebody else's claim. Several writers share the annotation; we change our own entry only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from batch_resources import quantities
from batch_resources.annotations import documents
from batch_resources.annotations.documents import DocumentError, JsonObject
from batch_resources.keys import BATCH_CPU, BATCH_MEMORY, PRIORITY_BATCH
from batch_resources.quantities import INT64_MAX, QuantityError
from batch_resources.resources import ZERO_BATCH, BatchResources

_DOCUMENT_FIELDS: Final = frozenset({"allocations"})
_ENTRY_FIELDS: Final = frozenset({"name", "priority", "resources"})


class ThirdPartyError(ValueError):
    """Say why the annotation cannot be read or kept, with the path inside it."""


class ThirdPartyAllocations(Struct, frozen=True):
    """Hold the annotation as read. The dictionaries inside are never changed after reading."""

    _document: JsonObject
    _entries: tuple[JsonObject | None, ...]

    def has_entry(self, name: str) -> bool:
        """Tell whether an entry of this name exists, whatever its priority."""
        return any(_name(entry) == name for entry in self._entries)

    def entry(self, name: str) -> BatchResources | None:
        """Read what koord-manager subtracts for `name`.

        Returns:
            The sum of the entries of that name with priority koord-batch, rounded up; None when there is none
            (an entry with another priority has no effect on batch resources).

        Raises:
            ThirdPartyError: a quantity in such an entry is malformed, negative or beyond 64 bits.
        """
        found = [(index, entry) for index, entry in self._counted() if _name(entry) == name]
        return _sum(found) if found else None

    def others(self, excluding_name: str) -> BatchResources:
        """Add up what everybody else holds with priority koord-batch, rounded up.

        Raises:
            ThirdPartyError: a quantity of somebody else is malformed (whatever its resource or priority: it makes
                koord-manager ignore the whole annotation), or a batch quantity is negative or beyond 64 bits.
        """
        for index, entry in enumerate(self._entries):
            if entry is not None and _name(entry) != excluding_name:
                _check_quantities(entry, index)
        return _sum([(index, entry) for index, entry in self._counted() if _name(entry) != excluding_name])

    def with_entry(self, name: str, resources: BatchResources) -> str:
        """Write the annotation with our entry set, everything else kept.

        The first entry of that name is replaced in its place and keeps its unknown fields, further ones of the
        same name are dropped; priority becomes koord-batch.

        Args:
            name: our entry's name.
            resources: what we hold; whole milli-cores and bytes, 0 to 2^63-1.

        Returns:
            Canonical text: keys sorted, quantities as the API server writes them.

        Raises:
            ThirdPartyError: an amount is negative or beyond 64 bits.
        """
        ours = {"name": name, "priority": PRIORITY_BATCH, "resources": _quantities_of(resources)}
        entries: list[JsonObject | None] = []
        is_placed = False
        for entry in self._entries:
            if _name(entry) != name:
                entries.append(entry)
            elif not is_placed:
                entries.append((entry or {}) | ours)
                is_placed = True
        if not is_placed:
            entries.append(ours)
        return documents.encode(self._document | {"allocations": entries})

    def without_entry(self, name: str) -> str | None:
        """Write the annotation without our entry; None when nothing is left, so that the key can be removed."""
        entries = [entry for entry in self._entries if _name(entry) != name]
        if not entries and self._document.keys() <= _DOCUMENT_FIELDS:
            return None
        return documents.encode(self._document | {"allocations": entries})

    def _counted(self) -> Iterator[tuple[int, JsonObject]]:
        for index, entry in enumerate(self._entries):
            if entry is not None and entry.get("priority") == PRIORITY_BATCH:
                yield index, entry


def read_third_party(text: str | None) -> ThirdPartyAllocations:
    """Read the annotation.

    Args:
        text: its value. None, `null`, and a text of blanks hold no entries.

    Returns:
        The entries, foreign ones and unknown fields included.

    Raises:
        ThirdPartyError: not JSON, a key twice, too long, too deep, or of another shape.
    """
    try:
        document = documents.parse_object(text) if text and not text.isspace() else {}
        documents.refuse_case_variants(document, _DOCUMENT_FIELDS, "annotation")
        listed = document.get("allocations")
        if listed is None:
            listed = []
        if not isinstance(listed, list):
            raise DocumentError(f"allocations is of kind {documents.kind_of(listed)}, not array")  # noqa: TRY301
        for index, entry in enumerate(listed):
            _check_shape(entry, f"allocations[{index}]")
    except DocumentError as error:
        raise ThirdPartyError(str(error)) from error
    return ThirdPartyAllocations(document, tuple(listed))


def _check_shape(entry: object, where: str) -> None:
    if entry is None:
        return
    if not isinstance(entry, dict):
        raise DocumentError(f"{where} is of kind {documents.kind_of(entry)}, not object")
    documents.refuse_case_variants(entry, _ENTRY_FIELDS, where)
    for field in ("name", "priority"):
        kind = documents.kind_of(entry.get(field))
        if kind not in ("string", "null"):
            raise DocumentError(f"{where}.{field} is of kind {kind}, not string")
    documents.optional_object(entry, "resources", where)


def _name(entry: Mapping[str, Any] | None) -> str:
    return (entry or {}).get("name") or ""


def _listed(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return entry.get("resources") or {}


def _check_quantities(entry: Mapping[str, Any], index: int) -> None:
    for key, value in _listed(entry).items():
        try:
            quantities.exact_quantity(value)
        except QuantityError as error:
            raise ThirdPartyError(f"{_where(entry, index)}: {key[:64]}: {error}") from error


def _sum(entries: list[tuple[int, JsonObject]]) -> BatchResources:
    total = ZERO_BATCH
    for index, entry in entries:
        total += BatchResources(
            cpu_milli=_amount(entry, index, BATCH_CPU), memory_bytes=_amount(entry, index, BATCH_MEMORY)
        )
    return total


def _amount(entry: Mapping[str, Any], index: int, key: str) -> int:
    value = _listed(entry).get(key)
    try:
        amount = quantities.quantity_ceil(value)
    except QuantityError as error:
        raise ThirdPartyError(f"{_where(entry, index)}: {key}: {error}") from error
    if not 0 <= amount <= INT64_MAX:
        raise ThirdPartyError(f"{_where(entry, index)}: {key}: {quantities.shown(value)} is outside 0 to {INT64_MAX}")
    return amount


def _where(entry: Mapping[str, Any], index: int) -> str:
    return f"allocations[{index}] (name {_name(entry)[:64]!r})"


def _quantities_of(resources: BatchResources) -> dict[str, str]:
    for key, amount in ((BATCH_CPU, resources.cpu_milli), (BATCH_MEMORY, resources.memory_bytes)):
        if not 0 <= amount <= INT64_MAX:
            raise ThirdPartyError(f"{key}: a claim of {quantities.shown(amount)} is outside 0 to {INT64_MAX}")
    return {
        BATCH_CPU: quantities.format_decimal(resources.cpu_milli),
        BATCH_MEMORY: quantities.format_binary(resources.memory_bytes),
    }
