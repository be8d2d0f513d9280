# SPDX-License-Identifier: Apache-2.0
"""Test what the kill of a large group costs, and that it keeps to its deadline."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nm_proxy.cgroup.errors import KillIncompleteError
from nm_proxy.cgroup.killing import groups_of
from tests.unit.nm_proxy.test_killing import filled, killer_of
from tests.unit.nm_proxy.world import Node


@pytest.mark.parametrize("count", [100, 200, 400])
def test_reads_the_lists_as_often_for_many_as_for_few(node: Node, count: int) -> None:
    filled(node, count)
    killer, signaller = killer_of(node)
    before = len(node.kernel.operations)
    assert killer.kill(node.path(), timeout_seconds=5) == count
    reads = [one for one in node.kernel.operations[before:] if one.startswith("read") and "cgroup.procs" in one]
    assert len(reads) <= 30
    assert len(signaller.signalled) == count


def test_passes_over_a_number_that_is_another_process_where_freezing_was_not_confirmed(node: Node) -> None:
    pids = filled(node)
    node.kernel.freezes_slowly = True
    killer, signaller = killer_of(node)
    plain = signaller.kill

    def leave_then_kill(pid: int, is_member: Callable[[int], bool]) -> None:
        node.kernel.put(pids[0], "")
        plain(pid, is_member)

    signaller.kill = leave_then_kill  # type: ignore[method-assign] # the number is used again in between
    killer.kill(node.path(), timeout_seconds=5)
    assert set(signaller.signalled) == set(pids[1:])


def test_stops_signalling_at_the_deadline_and_thaws(node: Node) -> None:
    filled(node, 10)
    killer, signaller = killer_of(node)
    plain = signaller.kill

    def slowly(pid: int, is_member: Callable[[int], bool]) -> None:
        node.time.now += 1
        plain(pid, is_member)

    signaller.kill = slowly  # type: ignore[method-assign] # a loaded machine
    with pytest.raises(KillIncompleteError):
        killer.kill(node.path(), timeout_seconds=3)
    assert len(signaller.signalled) == 3
    assert node.kernel.show("freezer", node.path(), "freezer.state") == "THAWED"


def test_reads_the_groups_of_a_process_as_the_kernel_shows_them() -> None:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    assert set(groups_of(os.getpid()).values()) == {line.split(":", 2)[2] for line in lines}
    assert groups_of(2**22 + 1) == {}
