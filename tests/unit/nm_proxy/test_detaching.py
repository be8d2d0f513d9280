# SPDX-License-Identifier: Apache-2.0
"""Tasks leave the NodeManager's container in every version 1 hierarchy, with what bounded it, and nobody else does."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lab.embedded.cgroup.processes import FakeProcess
from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.layout import Driver
from nm_proxy.parenting.detaching import Detacher, OwnGroups, is_detaching
from tests.unit.nm_proxy.world import V1_WHOLE, Node, container_id

RULES = "c 1:3 rwm\nc 1:5 rwm\nb *:* m\n"
OTHERS = tuple(name for _, name, _ in V1_WHOLE if name in ("devices", "pids", "systemd", "unified"))
LIMITING = ("cpu", "cpuacct", "cpuset", "memory", "freezer")


class Pod:
    """Hold a node whose NodeManager is in a container with a group, rules and limits of its own."""

    def __init__(self, folder: Path, driver: Driver = Driver.CGROUPFS) -> None:
        self.node = node = Node(folder, kind="v1-whole", driver=driver)
        self.pod = f"{node.place.best_effort}/{driver.pod_prefix}1"
        self.box = f"{self.pod}/box"
        for mount in node.kernel.mounts:
            node.kernel.make_directory(f"{mount.mount_point}/{self.box}")
        node.kernel.put(node.node_manager.pid, self.box)
        for name in ("cpuset.cpus", "cpuset.mems"):
            node.kernel.force("cpuset", self.box, name, "0")
        node.kernel.force("devices", self.box, "devices.list", RULES)
        node.kernel.force("pids", self.pod, "pids.max", "900")
        self.restart(node.node_manager)

    def restart(self, node_manager: FakeProcess) -> None:
        """Start the program anew, in the container of a NodeManager."""
        node = self.node
        node.node_manager = node_manager
        lines = [
            f"{number}:{','.join(mount.controllers) if mount.version == 'v1' else ''}:/"
            f"{node_manager.groups[mount.mount_point]}\n"
            for number, mount in enumerate(node.kernel.mounts)
        ]
        (node.kernel.processes.directory / str(node_manager.pid) / "cgroup").write_text("".join(lines))
        node.options.detacher = Detacher(
            node.found, node.kernel, node.processes, monotonic=node.time.monotonic, own_pid=node_manager.pid
        )
        node.adopter = node.new_adopter()

    def launch(self, number: int = 2) -> tuple[FakeProcess, FakeProcess]:
        """Launch a container with the script that waits for it; gives script and task."""
        node_manager = self.node.node_manager
        name = container_id(number)
        script = self.node.kernel.processes.start(
            parent=node_manager.pid, session=node_manager.session, command=["bash", f"/x/{name}/executor.sh"]
        )
        self.node.node_manager = script
        task = self.node.launch(number)
        self.node.node_manager = node_manager
        return script, task

    def groups(self, process: FakeProcess) -> dict[str, str]:
        """Give a process's groups by the name of the hierarchy."""
        return {Path(point).name: path for point, path in self.node.kernel.where(process.pid).items()}

    def show(self, controller: str, name: str) -> str:
        """Read what YARN's directory says."""
        return self.node.kernel.show(controller, self.node.place.yarn, name)


@pytest.fixture(params=list(Driver))
def pod(request: pytest.FixtureRequest, tmp_path: Path) -> Pod:
    return Pod(tmp_path, request.param)


def test_task_and_waiting_script_leave_the_container_in_every_hierarchy(pod: Pod) -> None:
    script, task = pod.launch()
    child = pod.node.kernel.processes.fork(task.pid)
    assert pod.node.look().errors == {}
    yarn = pod.node.place.yarn
    for one in (task, child):
        groups = pod.groups(one)
        assert {groups[name] for name in OTHERS} == {yarn}
        assert {groups[name] for name in LIMITING} == {pod.node.path()}
    assert set(pod.groups(script).values()) == {yarn}
    assert set(pod.groups(pod.node.node_manager).values()) == {pod.box}


def test_what_bounds_the_container_bounds_its_tasks(pod: Pod) -> None:
    pod.launch()
    pod.node.look()
    assert sorted(pod.show("devices", "devices.list").splitlines()) == sorted(RULES.splitlines())
    assert pod.show("pids", "pids.max") == "900"


def test_an_own_lower_limit_counts_more_than_the_pods(pod: Pod) -> None:
    pod.node.kernel.force("pids", pod.box, "pids.max", "70")
    pod.launch()
    pod.node.look()
    assert pod.show("pids", "pids.max") == "70"


def test_a_privileged_container_has_nothing_to_carry(pod: Pod) -> None:
    pod.node.kernel.force("devices", pod.box, "devices.list", "a *:* rwm")
    pod.node.kernel.force("pids", pod.pod, "pids.max", "max")
    pod.launch()
    pod.node.kernel.operations.clear()
    pod.node.look()
    assert pod.show("devices", "devices.list") == "a *:* rwm"
    written = [one for one in pod.node.kernel.operations if one.startswith("write ")]
    assert not [one for one in written if "devices." in one or "pids.max" in one]


@pytest.mark.parametrize("rules", ["c 1:3 rw\nc 5:0 rwm\n", "a *:* rwm", "c 1:3 rwm\nc 1:5 rwm\nb *:* m\nc 9:9 r\n"])
def test_the_rules_of_the_next_container_replace_those_of_the_one_before(pod: Pod, rules: str) -> None:
    pod.launch()
    pod.node.look()
    pod.node.kernel.force("devices", pod.box, "devices.list", rules)
    pod.launch(3)
    assert pod.node.look().errors == {}
    assert sorted(pod.show("devices", "devices.list").splitlines()) == sorted(rules.splitlines())


def test_nobody_leaves_where_the_rules_cannot_be_carried_and_the_error_says_so(pod: Pod) -> None:
    pod.node.kernel.fail("write", "devices.deny", errno.EPERM)
    _, task = pod.launch()
    seen = pod.node.look()
    assert "devices.deny" in seen.errors[""]
    assert pod.groups(task)["devices"] == pod.box
    assert pod.groups(task)["pids"] == pod.node.place.yarn
    assert pod.node.adopter.states[container_id(2)].is_done
    pod.node.kernel.heal()
    assert pod.node.look().errors == {}
    assert pod.groups(task)["devices"] == pod.node.place.yarn


def test_limits_come_first_and_a_launch_waits_for_no_detaching(pod: Pod) -> None:
    pod.node.tree.prepare_parent(pod.node.place.yarn)
    _, task = pod.launch()
    pod.node.adopter.launch_pass(pod.node.view(), pod.node.files.scan())
    assert pod.node.is_inside(task.pid)
    assert pod.groups(task)["devices"] == pod.box


def test_a_pass_that_takes_too_long_is_finished_by_the_next(pod: Pod) -> None:
    tasks = [pod.launch(number)[1] for number in range(2, 8)]

    def take_time(pid: int, mount_point: str) -> None:
        pod.node.time.now += 0.02

    pod.node.kernel.before_move = take_time
    pod.node.look()
    assert any(pod.groups(one)["devices"] == pod.box for one in tasks)
    for _ in range(40):
        pod.node.look()
    assert all(pod.box not in pod.groups(one).values() for one in tasks)


def test_the_next_containers_program_leaves_those_alone_who_have_left_the_one_before(pod: Pod) -> None:
    script, task = pod.launch()
    pod.node.look()
    pod.node.kernel.processes.exit(pod.node.node_manager.pid)
    later = pod.node.kernel.processes.start(command=["java", "NodeManager"])
    pod.node.kernel.put(later.pid, pod.box)
    pod.restart(later)
    before = pod.groups(script), pod.groups(task)
    assert pod.node.look().errors == {}
    assert (pod.groups(script), pod.groups(task)) == before


def test_outside_of_any_container_nobody_is_moved(pod: Pod) -> None:
    pod.node.kernel.put(pod.node.node_manager.pid, "")
    pod.node.kernel.put(pod.node.node_manager.pid, pod.box, controller="memory")
    pod.restart(pod.node.node_manager)
    script, task = pod.launch()
    pod.node.look()
    assert pod.groups(script) == pod.groups(pod.node.node_manager)
    assert {pod.groups(task)[name] for name in OTHERS} == {""}


def test_a_task_that_is_in_a_group_of_somebody_else_stays_there(pod: Pod) -> None:
    _, task = pod.launch()
    pod.node.kernel.make_directory(str(pod.node.kernel.root / "devices" / "gpu"))
    pod.node.kernel.put(task.pid, "gpu", controller="devices")
    pod.node.look()
    assert pod.groups(task)["devices"] == "gpu"


def test_obstacles_are_named(pod: Pod) -> None:
    node, own = pod.node, pod.node.node_manager.pid

    def obstacles() -> list[str]:
        return list(OwnGroups(node.found, node.kernel, node.processes, own_pid=own).obstacles())

    assert obstacles() == []
    cgroup = node.kernel.processes.directory / str(own) / "cgroup"
    text = cgroup.read_text()
    cgroup.write_text(text + "30:net_cls:/elsewhere\n")
    assert obstacles() == ["hierarchy net_cls is not mounted below cgroup.root"]
    cgroup.write_text(text.replace(pod.box, ""))
    assert len(obstacles()) == len(V1_WHOLE)


@pytest.mark.parametrize(
    ("capabilities", "rules", "is_obstacle"),
    [
        ("00000000a80425fb", RULES, True),  # Docker's default set
        ("00000000a82425fb", RULES, False),  # with SYS_ADMIN
        ("000001ffffffffff", RULES, False),
        ("00000000a80425fb", "a *:* rwm", False),
        ("rubbish", RULES, False),
    ],
)
def test_device_rules_take_an_administrator(pod: Pod, capabilities: str, rules: str, is_obstacle: bool) -> None:
    node, own = pod.node, pod.node.node_manager.pid
    node.kernel.force("devices", pod.box, "devices.list", rules)
    status = node.kernel.processes.directory / str(own) / "status"
    status.write_text(f"Name:\tpython\nCapInh:\t0000000000000000\nCapEff:\t{capabilities}\n")
    found = list(OwnGroups(node.found, node.kernel, node.processes, own_pid=own).obstacles())
    assert found == (["its device rules cannot be given to tasks without CAP_SYS_ADMIN"] if is_obstacle else [])


@pytest.mark.parametrize(
    ("mode", "is_host_pid", "expected"),
    [
        (ParentingMode.ADOPT, True, True),
        (ParentingMode.ADOPT, False, False),
        (ParentingMode.EXECUTOR, True, False),
    ],
)
def test_it_matters_in_the_machines_pid_namespace(mode: ParentingMode, is_host_pid: bool, expected: bool) -> None:
    assert is_detaching(mode, is_host_pid=is_host_pid) is expected
