# SPDX-License-Identifier: Apache-2.0
"""Refuse and normalise objects where kube-apiserver does and a client can notice.

Covered: names, labels and annotations; quantities of nodes and pods (canonical text); empty maps left out; defaults of
pods that accounting reads. Not covered: everything else of the schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from batch_resources.quantities import QuantityError, format_binary, format_decimal, parse_quantity
from lab.embedded.kubernetes.resource_types import ResourceType
from lab.embedded.kubernetes.statuses import bad_request, invalid

_NAME: Final = re.compile(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
_KEY: Final = re.compile(r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")
_MAX_ANNOTATION_BYTES: Final = 256 * 1024
_INTEGER: Final = re.compile(r"^[0-9]+$")
_BINARY: Final = re.compile(r"^[0-9]+(Ki|Mi|Gi|Ti|Pi|Ei)$")
_DECIMAL: Final = re.compile(r"^[0-9]+([kMGTPE]|[eE][0-9]+)$")


def admit(type_: ResourceType, document: Any) -> dict[str, Any]:
    """Check a whole object as it is about to be stored, and normalise it in place.

    Raises:
        Refusal: 400 for wrong JSON types, 422 for wrong values.
    """
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {type_.kind})")
    metadata = document["metadata"]
    _check_metadata(type_, metadata)
    document.setdefault("apiVersion", type_.api_version)
    document.setdefault("kind", type_.kind)
    if type_.plural in ("nodes", "pods"):
        for holder, name in _resource_lists(document):
            holder[name] = {key: _canonical(type_, value) for key, value in holder[name].items()}
    return document


def _check_metadata(type_: ResourceType, metadata: dict[str, Any]) -> None:
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise invalid(type_, "", "metadata.name", "Required value: name or generateName is required")
    if len(name) > 253 or not _NAME.match(name):
        raise invalid(
            type_, name, "metadata.name", f'Invalid value: "{name}": a lowercase RFC 1123 subdomain must consist'
        )
    for part in ("labels", "annotations"):
        texts = metadata.get(part)
        if not texts:
            metadata.pop(part, None)
            continue
        if not isinstance(texts, dict) or not all(isinstance(value, str) for value in texts.values()):
            raise invalid(
                type_, name, "patch", f"json: cannot unmarshal into Go struct field ObjectMeta.metadata.{part}"
            )
        for key in texts:
            if not _is_key(key):
                problem = f'Invalid value: "{key}": name part must consist of alphanumeric characters'
                raise invalid(type_, name, f"metadata.{part}", problem)
    size = sum(len(key) + len(value) for key, value in metadata.get("annotations", {}).items())
    if size > _MAX_ANNOTATION_BYTES:
        problem = f"Too long: may not be more than {_MAX_ANNOTATION_BYTES} bytes"
        raise invalid(type_, name, "metadata.annotations", problem)


def _resource_lists(document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Give every map of quantities, as its holder and its name in it."""
    status, spec = document.get("status") or {}, document.get("spec") or {}
    holders = [(status, ("capacity", "allocatable")), (spec, ("overhead",))]
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        holders.append((container.get("resources") or {}, ("requests", "limits")))
    for holder, names in holders:
        for name in names:
            if holder.get(name):
                yield holder, name


@lru_cache(maxsize=4096)
def _is_key(text: str) -> bool:
    return _KEY.match(text) is not None


@lru_cache(maxsize=65536)
def _canonical(type_: ResourceType, value: str | int | float) -> str:
    text = str(value)
    try:
        exact = parse_quantity(value)
    except QuantityError as error:
        raise bad_request(
            f'{type_.kind} in version "{type_.version}" cannot be handled as a {type_.kind}: quantities must match the '
            "regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from error
    if _INTEGER.match(text) or _DECIMAL.match(text):
        return format_decimal(int(exact))
    if _BINARY.match(text):
        return format_binary(int(exact))
    return text  # fractions and signs stay as written; kube-apiserver would write some of them differently
