# SPDX-License-Identifier: Apache-2.0
"""Compute cpu weights and memory limits as the kernel's files want them; pure.

Version 1 has `cpu.shares` (2 to 262144, 1024 is one core), version 2 `cpu.weight` (1 to 10000, 100 is the default).
Inside YARN's directory Hadoop's own convention holds (1024 shares or weight 100 a vcore), so both ways of
parenting give the same. YARN's directory itself competes with best-effort pods, whose shares Koordinator turns into
weights by the linear rule below, so it must use that rule too: with 100 a vcore it would get 2.5 times its part.
"""

from __future__ import annotations

from typing import Final

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144
MIN_WEIGHT: Final = 1
MAX_WEIGHT: Final = 10_000
SHARES_PER_CORE: Final = 1024
WEIGHT_PER_VCORE: Final = 100
UNLIMITED_V1: Final = 1 << 62
"""From here on memory.limit_in_bytes means no limit: it reads the largest page multiple below 2**63 then."""

MAX_LIMIT_BYTES: Final = UNLIMITED_V1 - 65_536
PAGE_BYTES: Final = 65_536
"""The largest page size in use (arm64); a multiple of it is one of 4096 too."""


def clamped_shares(shares: int) -> int:
    """Keep `cpu.shares` within what the kernel accepts; it would clamp silently and never read back as written."""
    return min(max(shares, MIN_SHARES), MAX_SHARES)


def clamped_weight(weight: int) -> int:
    """Keep `cpu.weight` within what the kernel accepts; it refuses anything else with ERANGE."""
    return min(max(weight, MIN_WEIGHT), MAX_WEIGHT)


def container_shares(vcores: int, *, opportunistic: bool) -> int:
    """Give a container's `cpu.shares`; an OPPORTUNISTIC one gets the smallest, as with Hadoop's cpu handler."""
    return MIN_SHARES if opportunistic else clamped_shares(SHARES_PER_CORE * vcores)


def container_weight(vcores: int, *, opportunistic: bool) -> int:
    """Give a container's `cpu.weight`; an OPPORTUNISTIC one gets the smallest."""
    return MIN_WEIGHT if opportunistic else clamped_weight(WEIGHT_PER_VCORE * vcores)


def parent_shares(cpu_milli: int) -> int:
    """Give `cpu.shares` of YARN's directory for the milli-cores of its live containers."""
    return clamped_shares(cpu_milli * SHARES_PER_CORE // 1000)


def parent_weight(cpu_milli: int) -> int:
    """Give `cpu.weight` of YARN's directory, by kubelet's and Koordinator's linear rule from shares to weight."""
    return clamped_weight(1 + (parent_shares(cpu_milli) - MIN_SHARES) * 9999 // 262_142)


def limit_bytes(memory_bytes: int) -> int:
    """Round a memory limit down to whole pages, as the kernel does, so that it reads back as written."""
    return min(max(memory_bytes, PAGE_BYTES), MAX_LIMIT_BYTES) // PAGE_BYTES * PAGE_BYTES
