# SPDX-License-Identifier: Apache-2.0
"""Test that values and groups are put right, the parent's with them, and that only dead groups are removed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from nm_proxy.nodemanager.model import Answering
from nm_proxy.parenting.planning import Repair
from tests.unit.nm_proxy.world import Node, container_id, let_the_group_be, report

MIB = 1 << 20


def test_repairs_and_counts_what_somebody_else_rewrites(any_node: Node) -> None:
    process = any_node.launch()
    any_node.look()
    before = any_node.tree.values(any_node.path())
    any_node.set_cpu(any_node.path(), "7")
    any_node.set_limit(any_node.path(), str(1 << 40))
    any_node.kernel.put(process.pid, "")
    assert sorted(any_node.look().repairs) == [Repair.CPU, Repair.MEMBERSHIP, Repair.MEMORY]
    assert any_node.tree.values(any_node.path()) == before
    assert any_node.is_inside(process.pid)
    assert any_node.look().repairs == []


def test_repairs_the_parents_weight(any_node: Node) -> None:
    any_node.launch(vcores=3)
    any_node.look()
    any_node.set_cpu(any_node.place.yarn, "9")
    assert any_node.look().repairs == [Repair.PARENT_CPU]
    assert any_node.cpu(any_node.place.yarn) == any_node.tree.parent_cpu(3000)


def test_leaves_koordlets_values_alone(node: Node) -> None:
    node.launch()
    node.look()
    for path in (node.place.yarn, node.path()):
        node.kernel.force("cpuset", path, "cpuset.cpus", "1")
        node.kernel.force("cpu", path, "cpu.cfs_quota_us", "50000")
    assert node.look().repairs == []
    assert node.kernel.show("cpuset", node.path(), "cpuset.cpus") == "1"
    assert node.kernel.show("cpu", node.path(), "cpu.cfs_quota_us") == "50000"


def test_makes_a_group_again_that_somebody_removed(node: Node) -> None:
    process = node.launch()
    node.look()
    node.kernel.put(process.pid, "")
    node.tree.remove(node.path())
    assert Repair.GROUP in node.look().repairs
    assert node.is_inside(process.pid)
    assert node.tree.values(node.path()).memory_bytes == 1024 * MIB


def test_makes_the_parent_again_that_somebody_removed(node: Node) -> None:
    process = node.launch()
    node.look()
    node.kernel.put(process.pid, "")
    node.tree.remove(node.path())
    node.tree.remove(node.place.yarn)
    assert Repair.PARENT_GROUP in node.look().repairs
    assert node.is_inside(process.pid)


def test_the_parent_weighs_what_lives_and_less_again(any_node: Node) -> None:
    first, second = any_node.launch(2, vcores=2), any_node.launch(3, vcores=5)
    any_node.look()
    assert any_node.cpu(any_node.place.yarn) == any_node.tree.parent_cpu(7000)
    any_node.kernel.processes.exit(second.pid)
    any_node.look()
    assert any_node.cpu(any_node.place.yarn) == any_node.tree.parent_cpu(2000)
    any_node.kernel.processes.exit(first.pid)
    any_node.look()
    assert any_node.cpu(any_node.place.yarn) == any_node.tree.parent_cpu(0)


def test_a_container_that_the_node_manager_forgot_keeps_its_weight(node: Node) -> None:
    node.launch(vcores=6)
    node.look()
    node.reports.clear()
    node.look()
    assert node.cpu(node.place.yarn) == node.tree.parent_cpu(6000)


def test_the_wall_is_set_and_repaired(tmp_path: Path) -> None:
    node = Node(tmp_path, wall_bytes=4096 * MIB)
    node.look()
    assert node.tree.values(node.place.yarn).memory_bytes == 4096 * MIB
    node.set_limit(node.place.yarn, str(1 << 40))
    assert node.look().repairs == [Repair.PARENT_MEMORY]
    node.parent.memory_wall_bytes = None
    assert node.look().repairs == []
    assert node.tree.values(node.place.yarn).memory_bytes is None


def test_the_wall_waits_until_it_kills_nobody(tmp_path: Path) -> None:
    node = Node(tmp_path, kind="v2", wall_bytes=1024 * MIB)
    node.tree.prepare_parent(node.place.yarn)
    node.set_used(node.place.yarn, 2048 * MIB)
    assert node.look().errors == {}
    assert node.tree.values(node.place.yarn).memory_bytes is None
    node.set_used(node.place.yarn, 512 * MIB)
    node.look()
    assert node.tree.values(node.place.yarn).memory_bytes == 1024 * MIB


def test_without_a_wall_somebody_elses_limit_is_left_alone(node: Node) -> None:
    node.look()
    node.set_limit(node.place.yarn, str(4096 * MIB))
    assert node.look().repairs == []
    assert node.tree.values(node.place.yarn).memory_bytes == 4096 * MIB


def test_a_limit_that_is_found_without_a_wall_is_told_once(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.tree.prepare_parent(node.place.yarn)
    node.set_limit(node.place.yarn, str(4096 * MIB))
    node.look()
    node.look()
    (told,) = [one for one in caplog.records if "although none is configured" in one.message]
    assert vars(told)["limit_bytes"] == 4096 * MIB


def test_a_weight_does_not_wait_for_a_limit_that_is_refused(tmp_path: Path) -> None:
    node = Node(tmp_path, kind="v1")
    node.launch(vcores=2, memory_mib=512)
    node.look()
    node.set_used(node.path(), 400 * MIB)
    node.reports[container_id(2)] = report(container_id(2), vcores=4, memory_mib=256)
    (error,) = node.look().errors.values()
    assert "tried again" in str(error)
    assert node.cpu(node.path()) == 4 * 1024
    node.set_used(node.path(), 200 * MIB)
    assert node.look().errors == {}
    assert node.tree.values(node.path()).memory_bytes == 256 * MIB


def test_removes_an_empty_group_only_when_old_and_unknown(node: Node) -> None:
    process = node.launch()
    node.look()
    node.kernel.processes.exit(process.pid)
    (node.local / "nmPrivate/application_1700000000000_0001" / container_id(2) / f"{container_id(2)}.pid").unlink()
    let_the_group_be(node, 61)
    assert node.look().removed == []
    del node.reports[container_id(2)]
    node.answering = Answering.HANGS
    assert node.look().removed == []
    node.answering = Answering.ANSWERS
    assert node.look().removed == [container_id(2)]
    assert not node.tree.exists_anywhere(node.path())
    assert container_id(2) not in node.adopter.states


def test_leaves_a_young_empty_group_to_the_launch_that_made_it(node: Node) -> None:
    node.tree.prepare_parent(node.place.yarn)
    node.tree.create(node.path())
    let_the_group_be(node, 30)
    assert node.look().removed == []
    assert node.tree.exists(node.path())


def test_says_that_a_group_cannot_be_removed(node: Node) -> None:
    node.tree.prepare_parent(node.place.yarn)
    node.tree.create(node.path())
    node.kernel.fail("remove", container_id(2), errno.EBUSY)
    let_the_group_be(node, 61)
    assert container_id(2) in node.look().errors
