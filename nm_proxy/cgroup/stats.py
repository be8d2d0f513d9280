# SPDX-License-Identifier: Apache-2.0
"""Read what a group uses: cpu time, throttling, memory and pressure, in the same units for both versions.

Files: v1 cpuacct.usage (ns), cpu.stat (nr_throttled, throttled_time in ns), memory.usage_in_bytes,
memory.max_usage_in_bytes, memory.failcnt, memory.oom_control (oom_kill); v2 cpu.stat (us), memory.current,
memory.peak (5.19), memory.events, cpu.pressure, memory.pressure, io.pressure. A file that a kernel does not have gives
None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.cgroup.files import Files
from nm_proxy.cgroup.hierarchy import Hierarchy
from nm_proxy.cgroup.layout import Version
from nm_proxy.cgroup.tree import CgroupTree, Values

PRESSURE_KINDS: Final = ("cpu", "memory", "io")
_NANO: Final = 1_000_000_000
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """Hold one PSI file: part of the last ten seconds in percent, and stalled time in seconds since the start.

    `some` is the time in which at least one task waited, `full` that in which all did; None where the kernel has none.
    """

    some_average10: float
    some_seconds: float
    full_average10: float | None = None
    full_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Hold what one group uses; None is "this kernel does not say".

    Attributes:
        cpu_seconds: processor time of its life.
        throttled_periods: periods in which a quota stopped it.
        throttled_seconds: how long it was stopped.
        memory_bytes: charged now.
        memory_peak_bytes: most that was charged.
        limit_hits: times the limit was met (v1 failcnt, v2 events max).
        oom_kills: processes that the kernel killed for memory.
        pressure: by kind, see `PRESSURE_KINDS`; empty in version 1.
        values: weight and limit in force; None where they cannot be read.
    """

    cpu_seconds: float | None
    throttled_periods: int | None
    throttled_seconds: float | None
    memory_bytes: int | None
    memory_peak_bytes: int | None
    limit_hits: int | None
    oom_kills: int | None
    pressure: Mapping[str, Pressure]
    values: Values | None


def read_stats(tree: CgroupTree, path: str) -> Stats:
    """Read everything about one group; a group that is gone gives None everywhere."""
    cpu = _read_cpu(tree, path)
    memory = _read_memory(tree, path)
    try:
        values = tree.values(path)
    except CgroupError:
        values = None
    return Stats(
        cpu_seconds=cpu[0],
        throttled_periods=cpu[1],
        throttled_seconds=cpu[2],
        memory_bytes=memory[0],
        memory_peak_bytes=memory[1],
        limit_hits=memory[2],
        oom_kills=memory[3],
        pressure=read_pressure(tree, path),
        values=values,
    )


def read_memory_bytes(tree: CgroupTree, path: str) -> int | None:
    """Read what a group has charged now."""
    memory = tree.hierarchies.required("memory")
    name = "memory.usage_in_bytes" if memory.version is Version.V1 else "memory.current"
    return _whole(_text(tree.files, f"{memory.at(path)}/{name}"))


def read_pressure(tree: CgroupTree, path: str) -> dict[str, Pressure]:
    """Read the PSI files of a version 2 group; version 1 has them for the whole node only."""
    memory = tree.hierarchies.required("memory")
    if memory.version is Version.V1:
        return {}
    found = {kind: parse_pressure(_text(tree.files, f"{memory.at(path)}/{kind}.pressure")) for kind in PRESSURE_KINDS}
    return {kind: pressure for kind, pressure in found.items() if pressure is not None}


def parse_pressure(text: str | None) -> Pressure | None:
    """Read a PSI text: lines `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` (microseconds) and `full ...`."""
    lines = {}
    for line in (text or "").splitlines():
        kind, *pairs = line.split()
        lines[kind] = dict(pair.partition("=")[::2] for pair in pairs)
    try:
        some, full = lines["some"], lines.get("full")
        return Pressure(
            some_average10=float(some["avg10"]),
            some_seconds=int(some["total"]) / _MICRO,
            full_average10=float(full["avg10"]) if full else None,
            full_seconds=int(full["total"]) / _MICRO if full else None,
        )
    except (KeyError, ValueError):
        return None


def _read_cpu(tree: CgroupTree, path: str) -> tuple[float | None, int | None, float | None]:
    cpu = tree.hierarchies.required("cpu")
    pairs = _pairs(_text(tree.files, f"{cpu.at(path)}/cpu.stat"))
    if cpu.version is Version.V2:
        return (
            _scaled(pairs.get("usage_usec"), _MICRO),
            pairs.get("nr_throttled"),
            _scaled(pairs.get("throttled_usec"), _MICRO),
        )
    return (
        _v1_cpu_seconds(tree.files, tree.hierarchies.of("cpuacct"), path),
        pairs.get("nr_throttled"),
        _scaled(pairs.get("throttled_time"), _NANO),
    )


def _v1_cpu_seconds(files: Files, hierarchy: Hierarchy | None, path: str) -> float | None:
    if hierarchy is None:
        return None
    return _scaled(_whole(_text(files, f"{hierarchy.at(path)}/cpuacct.usage")), _NANO)


def _read_memory(tree: CgroupTree, path: str) -> tuple[int | None, int | None, int | None, int | None]:
    memory = tree.hierarchies.required("memory")
    directory, files = memory.at(path), tree.files
    if memory.version is Version.V1:
        return (
            _whole(_text(files, f"{directory}/memory.usage_in_bytes")),
            _whole(_text(files, f"{directory}/memory.max_usage_in_bytes")),
            _whole(_text(files, f"{directory}/memory.failcnt")),
            _pairs(_text(files, f"{directory}/memory.oom_control")).get("oom_kill"),
        )
    events = _pairs(_text(files, f"{directory}/memory.events"))
    return (
        _whole(_text(files, f"{directory}/memory.current")),
        _whole(_text(files, f"{directory}/memory.peak")),
        events.get("max"),
        events.get("oom_kill"),
    )


def _text(files: Files, path: str) -> str | None:
    try:
        return files.read(path)
    except CgroupError:
        return None


def _whole(text: str | None) -> int | None:
    stripped = (text or "").strip()
    return int(stripped) if stripped.isascii() and stripped.isdigit() else None


def _pairs(text: str | None) -> dict[str, int]:
    fields = (line.split() for line in (text or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in fields if len(pair) == 2 and pair[1].isdigit()}


def _scaled(value: int | None, divisor: int) -> float | None:
    return None if value is None else value / divisor
