# SPDX-License-Identifier: Apache-2.0
"""Test that use is read in the same units from both versions, and that unknown is not zero."""

from __future__ import annotations

import pytest

from nm_proxy.cgroup.stats import Pressure, parse_pressure, read_memory_bytes, read_stats
from nm_proxy.cgroup.tree import Values
from tests.unit.nm_proxy.world import Node


def grouped(node: Node) -> Node:
    node.tree.prepare_parent(node.place.yarn)
    node.tree.create(node.path())
    return node


def test_reads_v1(node: Node) -> None:
    path = grouped(node).path()
    node.kernel.force("cpuacct", path, "cpuacct.usage", "2500000000\n")
    node.kernel.force("cpu", path, "cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 1500000000\n")
    node.kernel.force("memory", path, "memory.usage_in_bytes", "4096")
    node.kernel.force("memory", path, "memory.max_usage_in_bytes", "8192")
    node.kernel.force("memory", path, "memory.failcnt", "7")
    node.kernel.force("memory", path, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    stats = read_stats(node.tree, path)
    assert (stats.cpu_seconds, stats.throttled_periods, stats.throttled_seconds) == (2.5, 4, 1.5)
    assert (stats.memory_bytes, stats.memory_peak_bytes, stats.limit_hits, stats.oom_kills) == (4096, 8192, 7, 2)
    assert stats.values == Values(cpu=1024, memory_bytes=None)
    assert stats.pressure == {}


def test_reads_v2(v2_node: Node) -> None:
    path = grouped(v2_node).path()
    v2_node.kernel.force("cpu", path, "cpu.stat", "usage_usec 2500000\nnr_throttled 4\nthrottled_usec 1500000\n")
    v2_node.kernel.force("memory", path, "memory.current", "4096")
    v2_node.kernel.force("memory", path, "memory.peak", "8192")
    v2_node.kernel.force("memory", path, "memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 2\n")
    stats = read_stats(v2_node.tree, path)
    assert (stats.cpu_seconds, stats.throttled_periods, stats.throttled_seconds) == (2.5, 4, 1.5)
    assert (stats.memory_bytes, stats.memory_peak_bytes, stats.limit_hits, stats.oom_kills) == (4096, 8192, 7, 2)
    assert stats.pressure["cpu"] == Pressure(some_average10=1.5, some_seconds=2.5)
    assert stats.pressure["memory"].full_seconds == 0
    assert "io" not in stats.pressure


def test_a_missing_group_says_nothing(any_node: Node) -> None:
    stats = read_stats(any_node.tree, any_node.path())
    assert [stats.cpu_seconds, stats.memory_bytes, stats.oom_kills, stats.throttled_periods, stats.values] == [None] * 5
    assert read_memory_bytes(any_node.tree, any_node.path()) is None


def test_a_file_that_an_old_kernel_lacks_says_nothing(v2_node: Node) -> None:
    path = grouped(v2_node).path()
    (v2_node.kernel.root / path / "memory.peak").unlink()
    assert read_stats(v2_node.tree, path).memory_peak_bytes is None
    assert read_stats(v2_node.tree, path).memory_bytes == 0


@pytest.mark.parametrize("text", [None, "", "some", "some avg10=x total=1", "full avg10=0 total=0", "some avg10=1"])
def test_a_pressure_that_cannot_be_read_is_none(text: str | None) -> None:
    assert parse_pressure(text) is None
