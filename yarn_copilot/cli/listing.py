# SPDX-License-Identifier: Apache-2.0
"""Name many things in few words."""

from __future__ import annotations

from collections.abc import Iterable


def some(items: Iterable[object], limit: int = 5) -> str:
    """List the first few of many things, and how many more there are."""
    texts = [str(item) for item in items]
    rest = len(texts) - limit
    return ", ".join(texts[:limit]) + (f" and {rest} more" if rest > 0 else "")
