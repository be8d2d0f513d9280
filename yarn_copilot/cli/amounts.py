# SPDX-License-Identifier: Apache-2.0
"""Write amounts and ages for tables; `?` stands for unknown, which is never zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = "?"


def batch(amount: Mapping[str, Any] | None) -> str:
    """Write `{cpu_milli, memory_bytes}` as cores and GiB in one word: `60.6/229.1Gi`."""
    if not amount or amount.get("cpu_milli") is None or amount.get("memory_bytes") is None:
        return UNKNOWN
    return f"{amount['cpu_milli'] / 1000:.1f}/{amount['memory_bytes'] / 2**30:.1f}Gi"


def yarn(amount: Mapping[str, Any] | None) -> str:
    """Write `{memory_mib, vcores}` as vcores and MiB in one word: `60/234581Mi`."""
    return UNKNOWN if not amount else f"{amount['vcores']}/{amount['memory_mib']}Mi"


def age(seconds: float | None) -> str:
    """Write an age: `0.4s`, `12s`, `3m`, `2h`, `5d`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f}s"
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "m"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds // 86_400)}d"


def percent(fraction: float | None) -> str:
    """Write a fraction as percent."""
    return UNKNOWN if fraction is None else f"{fraction * 100:.1f}%"


def count(value: int | None) -> str:
    """Write a number."""
    return UNKNOWN if value is None else str(value)
