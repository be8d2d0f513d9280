# SPDX-License-Identifier: Apache-2.0
"""Test who belongs to a container: orphans come in, and whoever is not the container's is never moved."""

from __future__ import annotations

import os

import pytest

from tests.unit.nm_proxy.world import Node, container_id, report

MIB = 1 << 20


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
