# SPDX-License-Identifier: Apache-2.0
"""Match labels against an equality selector: `key=value,key2!=value2`; a bare key asks for presence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Hold the requirements: (key, value, negated), value None for presence."""

    requirements: tuple[tuple[str, str | None, bool], ...]

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read a selector.

        Raises:
            ValueError: a requirement has no key.
        """
        requirements = []
        for part in text.split(","):
            negated = "!=" in part
            key, separator, value = part.strip().partition("!=" if negated else "=")
            key = key.strip()
            if not key:
                raise ValueError(f"label selector {text[:256]!r} has an empty requirement")
            requirements.append((key, value.lstrip("=").strip() if separator else None, negated))
        return cls(tuple(requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether every requirement holds; an absent label meets `!=`, as in Kubernetes."""
        return all(
            (labels.get(key) != value) if negated else key in labels and value in (None, labels[key])
            for key, value, negated in self.requirements
        )
