# SPDX-License-Identifier: Apache-2.0
"""Understand label and field selectors.

Labels: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`, joined by commas.
Fields: `metadata.name`, `metadata.namespace` on all kinds and `spec.nodeName`, `status.phase` on pods, `=`, `==`, `!=`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from lab.embedded.kubernetes.statuses import bad_request

Selector = Callable[[Mapping[str, str], Mapping[str, str]], bool]
"""Take labels and fields of an object and tell whether it is selected."""

_SET: Final = re.compile(r"^([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)$")
_EQUAL: Final = re.compile(r"^([\w./-]+)\s*(==|=|!=)\s*([\w./-]*)$")
_EXISTS: Final = re.compile(r"^(!?)\s*([\w./-]+)$")
_COMMA: Final = re.compile(r",(?![^(]*\))")

FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "pods": frozenset({"metadata.name", "metadata.namespace", "spec.nodeName", "status.phase"}),
    "nodes": frozenset({"metadata.name", "metadata.namespace", "spec.unschedulable"}),
    "events": frozenset(
        {"metadata.name", "metadata.namespace", "involvedObject.name", "involvedObject.kind", "reason"}
    ),
}
_DEFAULT_FIELDS: Final = frozenset({"metadata.name", "metadata.namespace"})

_Test = Callable[[Mapping[str, str]], bool]


def selector_or_none(plural: str, label_text: str, field_text: str) -> Selector | None:
    """Compile both selectors; None where everything is selected.

    Raises:
        Refusal: 400, the text cannot be understood or names a field that is not selectable.
    """
    label_tests = [_label_test(part.strip()) for part in _COMMA.split(label_text) if part.strip()]
    field_tests = [_field_test(plural, part.strip()) for part in field_text.split(",") if part.strip()]
    if not label_tests and not field_tests:
        return None

    def selects(labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        return all(test(labels) for test in label_tests) and all(test(fields) for test in field_tests)

    return selects


def _label_test(text: str) -> _Test:
    if match := _SET.match(text):
        key, operator, values = match[1], match[2], {value.strip() for value in match[3].split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUAL.match(text):
        return _equality(match[1], match[2], match[3])
    if match := _EXISTS.match(text):
        negated, key = bool(match[1]), match[2]
        return lambda labels: (key in labels) != negated
    raise bad_request(f"unable to parse requirement: {text}")


def _field_test(plural: str, text: str) -> _Test:
    match = _EQUAL.match(text)
    if match is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    if match[1] not in FIELDS.get(plural, _DEFAULT_FIELDS):
        raise bad_request(f"field label not supported: {match[1]}")
    key, operator, value = match[1], match[2], match[3]
    if operator == "!=":
        return lambda fields: fields.get(key, "") != value
    return lambda fields: fields.get(key, "") == value


def _equality(key: str, operator: str, value: str) -> _Test:
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    return lambda labels: labels.get(key) == value
