# SPDX-License-Identifier: Apache-2.0
"""Match labels against an equality selector (`key=value,key2=value2`, a bare key asks for presence)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Hold the requirements: (key, value), value None for presence."""

    requirements: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read a selector.

        Raises:
            ValueError: a requirement has no key.
        """
        requirements = []
        for part in text.split(","):
            key, separator, value = part.strip().partition("=")
            key = key.strip()
            if not key:
                raise ValueError(f"label selector {text[:256]!r} has an empty requirement")
            requirements.append((key, value.lstrip("=").strip() if separator else None))
        return cls(tuple(requirements))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether every requirement holds."""
        for key, value in self.requirements:
            if key not in labels or (value is not None and labels[key] != value):
                return False
        return True
