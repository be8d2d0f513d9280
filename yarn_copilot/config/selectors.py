# SPDX-License-Identifier: Apache-2.0
"""Parse label selectors in their equality form: `key=value`, `key==value`, `key!=value`, comma separated.

Source: Kubernetes' label syntax: a key is an optional DNS prefix of at most 253 characters and `/`, then a name of at
most 63; a value has at most 63 characters and may be empty.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_NAME: Final = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$")
_PREFIX: Final = re.compile(r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")


class SelectorError(ValueError):
    """Say which part of a selector is wrong and what is allowed."""


class Requirement(NamedTuple):
    """Hold one part: a label must have (or, negated, must not have) a value."""

    key: str
    value: str
    negated: bool

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet this part; an absent label meets `!=`, as in Kubernetes."""
        return (labels.get(self.key) == self.value) != self.negated


def parse_selector(text: str) -> tuple[Requirement, ...]:
    """Parse a selector.

    Raises:
        SelectorError: the text is not in the equality form or breaks the label syntax.
    """
    return tuple(_parse_part(part.strip()) for part in text.split(","))


def selector_matches(requirements: tuple[Requirement, ...], labels: Mapping[str, str]) -> bool:
    """Tell whether labels meet all parts."""
    return all(requirement.matches(labels) for requirement in requirements)


def _parse_part(part: str) -> Requirement:
    negated = "!=" in part
    key, separator, value = part.partition("!=" if negated else "=")
    if not separator:
        raise SelectorError(f"{part[:64]!r} is not of the form key=value or key!=value (comma separated)")
    key, value = key.strip(), value.removeprefix("=").strip()
    prefix, slash, name = key.rpartition("/")
    if not _NAME.match(name) or (slash and not _PREFIX.match(prefix)):
        raise SelectorError(f"{key[:64]!r} is not a label key such as app.kubernetes.io/component")
    if value and not _NAME.match(value):
        raise SelectorError(f"{value[:64]!r} is not a label value: at most 63 letters, digits, '-', '_' and '.'")
    return Requirement(key, value, negated)
