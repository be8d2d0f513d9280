# SPDX-License-Identifier: Apache-2.0
"""On version 2 the script that waits for a task leaves the NodeManager's container too, into the task's group."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.embedded.cgroup.processes import FakeProcess
from nm_proxy.cgroup.layout import Driver
from nm_proxy.parenting.detaching import Detacher
from tests.unit.nm_proxy.world import Node, container_id


@pytest.fixture(params=list(Driver))
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """Give a node whose NodeManager is in a container that sees its own cgroup namespace: its group is the root."""
    node = Node(tmp_path, kind="v2", driver=request.param)
    pod = f"{node.place.best_effort}/{request.param.pod_prefix}1/box"
    for mount in node.kernel.mounts:
        for path in (pod.rpartition("/")[0], pod):
            node.kernel.make_directory(f"{mount.mount_point}/{path}")
    node.kernel.put(node.node_manager.pid, pod)
    (node.kernel.processes.directory / str(node.node_manager.pid) / "cgroup").write_text("0::/\n")
    node.options.detacher = Detacher(
        node.found, node.kernel, node.processes, monotonic=node.time.monotonic, own_pid=node.node_manager.pid
    )
    node.adopter = node.new_adopter()
    return node


def launch(node: Node, number: int = 2) -> tuple[FakeProcess, FakeProcess]:
    """Launch a container with the script that waits for it; gives script and task."""
    node_manager, name = node.node_manager, container_id(number)
    script = node.kernel.processes.start(
        parent=node_manager.pid, session=node_manager.session, command=["bash", f"/x/{name}/executor.sh"]
    )
    node.node_manager = script
    task = node.launch(number)
    node.node_manager = node_manager
    return script, task


def test_the_waiting_script_goes_to_the_group_of_its_task(node: Node) -> None:
    script, task = launch(node, 2)
    other, _ = launch(node, 3)
    assert node.look().errors == {}
    assert set(node.kernel.where(task.pid).values()) == {node.path(2)}
    assert set(node.kernel.where(script.pid).values()) == {node.path(2)}
    assert set(node.kernel.where(other.pid).values()) == {node.path(3)}
    assert node.path(2) not in node.kernel.where(node.node_manager.pid).values()


def test_a_script_that_is_inside_is_left_alone_and_is_no_repair(node: Node) -> None:
    launch(node)
    node.look()
    node.look()
    node.kernel.operations.clear()
    report = node.look()
    assert report.repairs == []
    assert not [one for one in node.kernel.operations if one.startswith("write ") and "cgroup.procs" in one]


@pytest.mark.parametrize("count", [1, 4])
def test_a_node_manager_whose_command_names_containers_waits_for_none(node: Node, count: int) -> None:
    names = [container_id(number) for number in range(2, 2 + count)]
    own = node.kernel.processes.directory / str(node.node_manager.pid) / "cmdline"
    own.write_bytes("\0".join(["stand-in", *names]).encode() + b"\0")
    before = node.kernel.where(node.node_manager.pid)
    tasks = [launch(node, number)[1] for number in range(2, 2 + count)]
    for _ in range(3):
        assert node.look().errors == {}
    assert node.kernel.where(node.node_manager.pid) == before
    for number, task in enumerate(tasks, 2):
        assert set(node.kernel.where(task.pid).values()) == {node.path(number)}
