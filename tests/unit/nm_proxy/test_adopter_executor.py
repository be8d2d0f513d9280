# SPDX-License-Identifier: Apache-2.0
"""Test beside LinuxContainerExecutor, which makes the groups of cpu and memory itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from nm_proxy.cgroup.layout import Driver
from nm_proxy.parenting.adopter import AdopterOptions
from nm_proxy.parenting.parent import Owner, Parent
from tests.unit.nm_proxy.world import Node, container_id


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
