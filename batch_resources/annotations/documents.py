# SPDX-License-Identifier: Apache-2.0
"""Read JSON of an annotation without trusting it, and write it back in one canonical form.

Rules:
- Size and depth are bounded; whatever the text is, the only error is `DocumentError`.
- A key that occurs twice in one object is an error. Go's decoder would take the last for a field and merge for a
  map; nobody writes that on purpose, so we do not guess.
- Numbers never become floats: integers are exact, other numbers keep their text as a `JsonNumber`.
- `NaN` and `Infinity`, which Python accepts, are errors as they are in Go.

Canonical form: keys sorted, no blanks, ASCII only (other characters as `\\uXXXX`, which also keeps lone surrogates).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Never

MAX_TEXT_LENGTH: Final = 262_144
"""Longest annotation read, characters: Kubernetes allows 256 KiB for all annotations of an object together."""

MAX_DEPTH: Final = 64
"""Deepest nesting accepted; Koordinator's own documents have four levels."""

_LONGEST_INT: Final = 40

JsonObject = dict[str, Any]


class DocumentError(ValueError):
    """Say why a text is not a document that can be kept."""


class JsonNumber(str):
    """Keep a JSON number that is not a small integer as it was written."""

    __slots__ = ()


def parse_object(text: str) -> JsonObject:
    """Read a JSON object; `null` counts as an empty one, as in Go.

    Args:
        text: the annotation's value.

    Returns:
        Objects as dict, arrays as list, integers as int, other numbers as `JsonNumber`.

    Raises:
        DocumentError: not JSON, not an object, too long, too deep, or a key twice.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise DocumentError(f"text has {len(text)} characters, the limit is {MAX_TEXT_LENGTH}")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise DocumentError(f"nested deeper than {MAX_DEPTH} levels") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DocumentError(f"JSON of kind {kind_of(value)}, not object")
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _refuse_depth(value)
    return value


def encode(value: object) -> str:
    """Write a value that `parse_object` gave, in canonical form."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{encode(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(encode, value)) + "]"
    if isinstance(value, JsonNumber):
        return str(value)
    return json.dumps(value)


def refuse_case_variants(document: Mapping[str, Any], fields: frozenset[str], where: str) -> None:
    """Refuse keys that differ from a known field only in case.

    Go's decoder would read `Allocations` as `allocations`; reading it as an unknown field here would let the two
    sides see different documents.

    Args:
        document: one JSON object.
        fields: the known names, lower case.
        where: path for the message.

    Raises:
        DocumentError: there is such a key.
    """
    if document.keys() <= fields:
        return
    for key in document.keys() - fields:
        if key.casefold() in fields:
            raise DocumentError(f"{where} has key {key[:64]!r}, which differs from {key.casefold()!r} only in case")


def optional_object(document: Mapping[str, Any], field: str, where: str) -> JsonObject:
    """Take a field that holds an object; absent and null are an empty one.

    Raises:
        DocumentError: the field holds something else.
    """
    value = document.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DocumentError(f"{where}.{field} is of kind {kind_of(value)}, not object")
    return value


def kind_of(value: object) -> str:
    """Name the JSON kind of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | JsonNumber():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    document = dict(pairs)
    if len(document) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise DocumentError(f"key {twice[:64]!r} occurs twice in one object")
    return document


def _integer(text: str) -> int | JsonNumber:
    return int(text) if len(text) <= _LONGEST_INT else JsonNumber(text)


def _constant(name: str) -> Never:
    raise DocumentError(f"not JSON: {name} is not a number")


def _refuse_depth(value: object) -> None:
    """Walk level by level, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        containers = [item for item in level if isinstance(item, dict | list)]
        if not containers:
            return
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    if any(isinstance(item, dict | list) for item in level):
        raise DocumentError(f"nested deeper than {MAX_DEPTH} levels")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=JsonNumber, parse_int=_integer, parse_constant=_constant
)
