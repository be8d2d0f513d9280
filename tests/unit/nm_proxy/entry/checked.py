# SPDX-License-Identifier: Apache-2.0
"""Hold a node on which all checks are content, to be broken in one point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.embedded.cgroup.kernel import FakeKernel
from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.layout import Driver
from nm_proxy.cgroup.mounts import Mount, parse_mounts
from nm_proxy.preflight.facts import NameFacts, NodeFacts, ProgramFacts, RecoveryFacts
from nm_proxy.preflight.findings import Finding, Severity
from nm_proxy.preflight.judging import judge
from nm_proxy.preflight.observing import Surroundings, observe_cgroup
from tests.unit.nm_proxy.entry.site import rendered, settings, write_site
from tests.unit.nm_proxy.world import Node


@dataclass
class World:
    """Hold a node on which everything is well, to be broken in one point."""

    folder: Path
    kind: str = "v1"
    driver: Driver = Driver.CGROUPFS
    mode: ParentingMode = ParentingMode.ADOPT
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.node = Node(self.folder, kind=self.kind, driver=self.driver)
        for one in self.node.found.hierarchies.every:
            if one.version == "v2":
                wanted = " ".join(f"+{name}" for name in sorted(one.controllers & {"cpu", "memory"}))
                self.kernel.write(f"{one.at(self.driver.best_effort)}/cgroup.subtree_control", wanted)
        write_site(self.folder / "conf/yarn-site.xml", {})
        self.may_write: Callable[[str], bool] = lambda _: True
        self.options, self.root, self.is_host_cgroup = "rw", "/", True
        self.facts = self.look()

    @property
    def kernel(self) -> FakeKernel:
        return self.node.kernel

    def look(self) -> NodeFacts:
        """Observe the tree as it is now; everything else is as it should be."""
        sections: dict[str, dict[str, Any]] = {
            **self.sections,
            "parenting": {"mode": self.mode.value},
            "cgroup": {"root": str(self.kernel.root), **self.sections.get("cgroup", {})},
        }
        around = Surroundings(
            environ={},
            files=self.kernel,
            mounts=self.mounts(),
            may_write=self.may_write,
            is_host_cgroup=lambda: self.is_host_cgroup,
        )
        seen = observe_cgroup(settings(self.folder, **sections), around)
        overlay = rendered(self.folder, detection=seen.detection, **sections).overlay
        return NodeFacts(
            cgroup=seen,
            programs=ProgramFacts(
                command=("yarn", "nodemanager"),
                command_path="/opt/hadoop/bin/yarn",
                java_path="/opt/java/bin/java",
                java_version=17,
                hadoop_version=(3, 5, 0),
            ),
            overlay=overlay,
            name=NameFacts(addresses=("10.0.0.7",), reverse="nm-3"),
            recovery=RecoveryFacts(
                directory="/var/lib/nm-proxy/recovery",
                mount_point="/var/lib/nm-proxy",
                file_system="ext4",
                is_writable=True,
                is_host_pid=False,
                is_container=True,
                keep_on_stop=False,
            ),
        )

    def mounts(self) -> list[Mount]:
        """Read the mounts, those of version 2 with other options and another root."""
        lines = []
        for line in self.kernel.mountinfo().splitlines():
            before, _, after = line.partition(" - ")
            if after.startswith("cgroup2 "):
                fields = before.split(" ")
                fields[3] = self.root
                before, after = " ".join(fields), f"cgroup2 cgroup2 {self.options}"
            lines.append(f"{before} - {after}")
        return parse_mounts("\n".join(lines))

    def errors(self) -> list[Finding]:
        return [one for one in judge(self.facts) if one.severity is Severity.ERROR]

    def the_error(self) -> Finding:
        (found,) = self.errors()
        return found
