# SPDX-License-Identifier: Apache-2.0
"""Test that containers get into their groups, keep their values, and that nothing else is touched."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nm_proxy.cgroup.layout import Driver
from nm_proxy.nodemanager.model import Answering
from nm_proxy.parenting.adopter import AdopterOptions
from nm_proxy.parenting.parent import Owner, Parent
from nm_proxy.parenting.planning import Repair
from tests.unit.nm_proxy.world import BOOT, Node, container_id, report

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


def let_the_group_be(node: Node, seconds: float) -> None:
    """Set the clock so that the group is so old; its files are dated by the machine."""
    made = (node.kernel.root / "cpu" / node.path()).stat().st_mtime
    node.time.now = made - BOOT + seconds


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


def test_finds_orphans_by_the_id_in_their_environment(any_node: Node) -> None:
    process = any_node.launch()
    any_node.look()
    orphan = any_node.kernel.processes.start(environment={"CONTAINER_ID": container_id(2)})
    stranger = any_node.kernel.processes.start(environment={"CONTAINER_ID": container_id(77)})
    any_node.look()
    assert any_node.is_inside(orphan.pid)
    assert any_node.is_inside(process.pid)
    assert not any_node.is_inside(stranger.pid)


def test_adopts_without_a_pid_file_whom_the_node_manager_lists(node: Node) -> None:
    node.reports[container_id(5)] = report(container_id(5))
    node.kernel.processes.now_ticks = int(node.time.now * 100)
    process = node.kernel.processes.start(environment={"CONTAINER_ID": container_id(5)})
    node.look()
    assert not node.is_inside(process.pid, 5), "its pid file may still come"
    node.time.now += 5.0
    node.look()
    assert node.is_inside(process.pid, 5)
    assert node.tree.values(node.path(5)).memory_bytes == 1024 * MIB


def test_leaves_the_script_that_waits_for_the_exit_code_outside(any_node: Node) -> None:
    name = container_id(2)
    processes = any_node.kernel.processes
    processes.now_ticks = int(any_node.time.now * 100)
    script = processes.start(parent=any_node.node_manager.pid, environment={"CONTAINER_ID": name})
    any_node.reports[name] = report(name)
    any_node.look()
    assert any_node.where_is(script.pid) != any_node.path()
    task = processes.start(parent=script.pid, environment={"CONTAINER_ID": name})
    any_node.write_pid_file(name, str(task.pid))
    any_node.look()
    any_node.time.now += 10.0
    assert any_node.look().repairs == []
    assert any_node.is_inside(task.pid)
    assert any_node.where_is(script.pid) != any_node.path()
    processes.exit(task.pid)
    any_node.look()
    assert any_node.where_is(script.pid) != any_node.path()


def test_asks_a_process_again_that_can_have_become_another_program(node: Node) -> None:
    node.launch()
    node.look()
    late = node.kernel.processes.start()
    node.look()
    node.kernel.processes.by_pid[late.pid].environment["CONTAINER_ID"] = container_id(2)
    (node.kernel.processes.directory / str(late.pid) / "environ").write_text(f"CONTAINER_ID={container_id(2)}\0")
    node.time.now += 1.0
    node.look()
    assert node.is_inside(late.pid)


def test_never_moves_a_process_that_is_not_the_containers(node: Node) -> None:
    victim = node.kernel.processes.start(command=["kubelet"])
    node.reports[container_id(2)] = report(container_id(2))
    node.time.now += 3600
    node.write_pid_file(container_id(2), str(victim.pid))
    seen = node.look()
    assert seen.unbelieved == [container_id(2)]
    assert not node.is_inside(victim.pid)


def test_does_not_believe_a_number_that_was_used_again(node: Node) -> None:
    process = node.launch()
    node.kernel.processes.exit(process.pid)
    node.kernel.processes.now_ticks += 60_000
    node.kernel.processes.start(pid=process.pid, command=["sshd"])
    assert node.look().unbelieved == [container_id(2)]
    assert not node.is_inside(process.pid)


def test_believes_a_process_whose_clock_was_stepped_if_it_names_the_container(node: Node) -> None:
    process = node.launch()
    node.write_pid_file(container_id(2), str(process.pid), at=5.0)
    assert node.look().unbelieved == []
    assert node.is_inside(process.pid)


@pytest.mark.parametrize("text", ["", "1", "0", "-5", "abc", "99999999999999999999", "12 13"])
def test_a_pid_file_that_is_no_number_is_no_pid_file(node: Node, text: str) -> None:
    node.write_pid_file(container_id(2), text)
    assert node.files.scan() == {}
    assert node.look().errors == {}


def test_never_moves_itself(node: Node) -> None:
    node.kernel.processes.now_ticks = int(node.time.now * 100)
    node.kernel.processes.start(pid=os.getpid())
    node.write_pid_file(container_id(2), str(os.getpid()))
    assert node.look().unbelieved == [container_id(2)]
    assert not node.is_inside(os.getpid())


def test_a_finished_container_is_not_adopted(node: Node) -> None:
    process = node.launch()
    node.reports[container_id(2)] = report(container_id(2), state="EXITED_WITH_SUCCESS")
    node.look()
    assert container_id(2) not in node.adopter.states
    assert not node.is_inside(process.pid)


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


class TestExecutor:
    """Test the way in which LinuxContainerExecutor makes the groups of cpu and memory."""

    def node(self, folder: Path, kind: str = "v1") -> Node:
        return Node(folder, kind=kind, driver=Driver.SYSTEMD, options=AdopterOptions(makes_groups=False))

    def make(self, node: Node) -> int:
        node.tree.prepare_parent(node.place.yarn)
        process = node.launch()
        for controller in ("cpu", "memory"):
            hierarchy = node.tree.hierarchies.required(controller)
            node.kernel.make_directory(hierarchy.at(node.path()))
            node.kernel.put(process.pid, node.path(), controller=controller)
        return process.pid

    @pytest.mark.parametrize("kind", ["v1", "v2"])
    def test_completes_the_hierarchies_that_the_executor_does_not_know(self, tmp_path: Path, kind: str) -> None:
        node = self.node(tmp_path, kind)
        pid = self.make(node)
        assert node.look().errors == {}
        assert node.is_inside(pid)
        assert node.adopter.states[container_id(2)].is_done

    def test_leaves_the_values_to_the_node_manager(self, tmp_path: Path) -> None:
        node = self.node(tmp_path)
        self.make(node)
        node.set_cpu(node.path(), "5")
        node.look()
        node.set_limit(node.path(), "8192")
        assert node.look().repairs == []
        assert node.cpu(node.path()) == 5

    def test_makes_no_group_for_a_pid_file(self, tmp_path: Path) -> None:
        node = self.node(tmp_path)
        node.launch()
        node.adopter.expect([container_id(2)], node.view())
        node.adopter.launch_pass(node.view(), node.files.scan())
        node.look()
        assert not node.tree.exists_anywhere(node.path())

    def test_weighs_the_parent(self, tmp_path: Path) -> None:
        node = self.node(tmp_path)
        self.make(node)
        node.look()
        assert node.cpu(node.place.yarn) == node.tree.parent_cpu(2000)

    def test_gives_the_parent_to_the_executors_user(self, tmp_path: Path) -> None:
        node = self.node(tmp_path)
        Parent(node.tree, node.place, owner=Owner(uid=1001, gid=1001)).prepare()
        owned = [one for one in node.kernel.operations if one.startswith("own ") and one.endswith("1001:1001")]
        assert len(owned) == len(node.tree.hierarchies.every)
