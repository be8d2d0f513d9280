# SPDX-License-Identifier: Apache-2.0
"""Test that launched containers get into their groups with their values, also after errors and restarts."""

from __future__ import annotations

import errno

import pytest

from nm_proxy.parenting.planning import Repair
from tests.unit.nm_proxy.world import Node, container_id, let_the_group_be, report

MIB = 1 << 20


def test_a_launched_container_is_inside_with_its_values(any_node: Node) -> None:
    process = any_node.launch(vcores=2, memory_mib=1024)
    child = any_node.kernel.processes.fork(process.pid, new_session=True)
    any_node.time.now += 0.02
    seen = any_node.look()
    assert seen.errors == {}
    assert any_node.is_inside(process.pid)
    assert any_node.is_inside(child.pid)
    values = any_node.tree.values(any_node.path())
    assert values.cpu == any_node.tree.container_cpu(2, opportunistic=False)
    assert values.memory_bytes == 1024 * MIB
    assert seen.adopted == [container_id(2)]
    assert seen.latencies == [pytest.approx(0.02)]
    assert any_node.adopter.states[container_id(2)].is_done


def test_groups_are_at_depth_two_below_best_effort(any_node: Node) -> None:
    any_node.launch()
    any_node.look()
    below = any_node.path().removeprefix(f"{any_node.place.best_effort}/")
    assert below == f"hadoop-yarn/{container_id(2)}"


def test_a_launch_pass_does_the_same_at_once(any_node: Node) -> None:
    any_node.tree.prepare_parent(any_node.place.yarn)
    any_node.adopter.expect([container_id(2)], any_node.view())
    process = any_node.launch()
    seen = any_node.adopter.launch_pass(any_node.view(), any_node.files.scan())
    assert any_node.is_inside(process.pid)
    assert any_node.adopter.states[container_id(2)].is_done
    assert len(seen.latencies) == 1
    assert seen.repairs == []


def test_what_was_prepared_with_limits_needs_only_to_be_entered(any_node: Node) -> None:
    any_node.tree.prepare_parent(any_node.place.yarn)
    any_node.reports[container_id(2)] = report(container_id(2), vcores=2, memory_mib=1024)
    any_node.adopter.expect([container_id(2)], any_node.view())
    assert any_node.tree.values(any_node.path()).memory_bytes == 1024 << 20
    process = any_node.launch()
    any_node.kernel.operations.clear()
    seen = any_node.adopter.launch_pass(any_node.view(), any_node.files.scan())
    assert any_node.is_inside(process.pid)
    assert any_node.adopter.states[container_id(2)].is_done
    assert len(seen.latencies) == 1
    changes = [one for one in any_node.kernel.operations if not one.startswith(("read ", "exists "))]
    assert changes
    assert all(one.startswith("write ") and one.endswith("/cgroup.procs") for one in changes)


def test_limits_that_were_changed_before_the_launch_are_repaired_by_the_next_look(any_node: Node) -> None:
    any_node.tree.prepare_parent(any_node.place.yarn)
    any_node.reports[container_id(2)] = report(container_id(2), vcores=2, memory_mib=1024)
    any_node.adopter.expect([container_id(2)], any_node.view())
    any_node.set_limit(any_node.path(), str(1 << 40))
    any_node.launch()
    any_node.adopter.launch_pass(any_node.view(), any_node.files.scan())
    assert any_node.look().repairs == [Repair.MEMORY]
    assert any_node.tree.values(any_node.path()).memory_bytes == 1024 << 20


def test_a_prepared_group_that_somebody_removed_is_made_again_by_the_next_look(any_node: Node) -> None:
    any_node.tree.prepare_parent(any_node.place.yarn)
    any_node.reports[container_id(2)] = report(container_id(2), vcores=2, memory_mib=1024)
    any_node.adopter.expect([container_id(2)], any_node.view())
    any_node.tree.remove(any_node.path())
    process = any_node.launch()
    assert container_id(2) in any_node.adopter.launch_pass(any_node.view(), any_node.files.scan()).errors
    assert any_node.look().errors == {}
    assert any_node.is_inside(process.pid)
    assert any_node.adopter.states[container_id(2)].is_done


def test_a_prepared_container_that_never_starts_is_forgotten(node: Node) -> None:
    node.tree.prepare_parent(node.place.yarn)
    node.adopter.expect([container_id(2)], node.view())
    let_the_group_be(node, 3600)
    assert node.look().removed == [container_id(2)]
    assert container_id(2) not in node.adopter.states


def test_a_launch_pass_makes_the_parent_where_there_is_none(node: Node) -> None:
    process = node.launch()
    assert node.adopter.launch_pass(node.view(), node.files.scan()).errors == {}
    assert node.is_inside(process.pid)


def test_limits_follow_when_the_node_manager_says_them_later(node: Node) -> None:
    process = node.launch(known=False)
    seen = node.adopter.launch_pass(node.view(), node.files.scan())
    assert node.is_inside(process.pid)
    assert seen.latencies == []
    assert not node.adopter.states[container_id(2)].is_done
    node.reports[container_id(2)] = report(container_id(2), vcores=4, memory_mib=512)
    assert len(node.look().latencies) == 1
    assert node.tree.values(node.path()).memory_bytes == 512 * MIB


@pytest.mark.parametrize("memory_mib", [None, 0])
def test_figures_that_are_missing_set_no_limit(node: Node, memory_mib: int | None) -> None:
    process = node.launch(known=False)
    node.reports[container_id(2)] = report(container_id(2), memory_mib=memory_mib)
    node.look()
    assert node.is_inside(process.pid)
    assert node.tree.values(node.path()).memory_bytes is None


def test_an_opportunistic_container_weighs_least(any_node: Node) -> None:
    any_node.launch(vcores=8, opportunistic=True)
    any_node.look()
    assert any_node.cpu(any_node.path()) == any_node.tree.container_cpu(0, opportunistic=True)


def test_a_limit_that_cannot_be_set_is_tried_until_it_is_in_force(node: Node) -> None:
    node.launch(memory_mib=1024)
    node.tree.prepare_parent(node.place.yarn)
    node.tree.create(node.path())
    node.set_used(node.path(), 2048 * MIB)
    seen = node.look()
    assert "busy" in seen.errors[container_id(2)]
    assert not node.adopter.states[container_id(2)].is_done
    node.set_used(node.path(), 100 * MIB)
    assert len(node.look().latencies) == 1
    assert node.adopter.states[container_id(2)].error == ""
    assert node.tree.values(node.path()).memory_bytes == 1024 * MIB


def test_follows_a_container_that_the_resource_manager_resizes(any_node: Node) -> None:
    any_node.launch(vcores=2, memory_mib=1024)
    any_node.look()
    any_node.reports[container_id(2)] = report(container_id(2), vcores=4, memory_mib=2048)
    assert any_node.look().repairs == []
    assert any_node.tree.values(any_node.path()).memory_bytes == 2048 * MIB
    assert any_node.cpu(any_node.path()) == any_node.tree.container_cpu(4, opportunistic=False)


def test_a_restart_finds_everything_again_and_counts_no_repair(any_node: Node) -> None:
    process = any_node.launch()
    any_node.look()
    any_node.time.now += 100
    any_node.adopter = any_node.new_adopter()
    seen = any_node.look()
    assert seen.repairs == []
    assert seen.latencies == []
    assert any_node.adopter.states[container_id(2)].is_done
    assert any_node.is_inside(process.pid)


def test_a_restart_without_pid_files_keeps_what_is_in_groups(node: Node) -> None:
    process = node.launch()
    node.look()
    node.adopter = node.new_adopter()
    node.adopter.full_pass(node.view(), {})
    node.kernel.put(process.pid, "", controller="memory")
    assert node.adopter.full_pass(node.view(), {}).repairs == [Repair.MEMBERSHIP]
    assert node.is_inside(process.pid)


def test_one_container_that_fails_does_not_stop_the_others(node: Node) -> None:
    node.launch(2)
    other = node.launch(3)
    node.kernel.fail("make", container_id(2), errno.ENOMEM)
    seen = node.look()
    assert container_id(2) in seen.errors
    assert node.is_inside(other.pid, 3)
    assert node.adopter.states[container_id(3)].is_done
    node.kernel.heal()
    assert node.look().errors == {}


def test_a_read_only_tree_is_said_and_nothing_is_lost(node: Node) -> None:
    process = node.launch()
    for mount in node.kernel.mounts:
        mount.is_read_only = True
    assert "read-only" in node.look().errors[""].lower() or "Read-only" in node.look().errors[""]
    for mount in node.kernel.mounts:
        mount.is_read_only = False
    assert node.look().errors == {}
    assert node.is_inside(process.pid)


def test_ahead_of_a_launch_a_broken_tree_is_no_error(node: Node) -> None:
    node.adopter.expect([container_id(9)], node.view())
    assert not node.tree.exists_anywhere(node.path(9))
