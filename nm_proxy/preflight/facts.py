# SPDX-License-Identifier: Apache-2.0
"""Hold what was seen of a node, for checks that do no I/O of their own."""

from __future__ import annotations

from dataclasses import dataclass

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.detection import Detection
from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.cgroup.hierarchy import Hierarchy
from nm_proxy.rendering.overlay import Overlay
from yarn_copilot.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """Hold what one hierarchy shows of kubelet's best-effort directory and of YARN's below it.

    Attributes:
        hierarchy: which one.
        best_effort, yarn: absolute directories.
        has_yarn: YARN's exists already.
        is_writable: groups may be made in the deepest of the two that exists.
        top_controllers: v2, `cgroup.controllers` of the mount, in the kernel's order.
        available: v2, what YARN's directory has or, where it does not exist, would have.
        best_effort_processes, yarn_processes: how many sit directly in them; 0 for a missing one.
    """

    hierarchy: Hierarchy
    best_effort: str
    yarn: str
    has_yarn: bool
    is_writable: bool
    top_controllers: tuple[str, ...] = ()
    available: frozenset[str] = frozenset()
    best_effort_processes: int = 0
    yarn_processes: int = 0

    @property
    def deepest(self) -> str:
        """Give the deepest directory that exists."""
        return self.yarn if self.has_yarn else self.best_effort


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupFacts:
    """Hold what was seen of the tree.

    Attributes:
        root: cgroup.root.
        mode: who makes the containers' groups.
        detection: None where `error` says why not.
        error: why the tree or the driver was not found, or could not be looked at.
        groups: one for each hierarchy in use.
        lookalikes: directories beside version 2 that look like version 1 hierarchies and are not mounted.
        is_host_namespace: this is the machine's own cgroup namespace.
        is_taken: the agent of another container works in YARN's directory.
    """

    root: str
    mode: ParentingMode
    detection: Detection | None = None
    error: CgroupError | None = None
    groups: tuple[GroupFacts, ...] = ()
    lookalikes: tuple[str, ...] = ()
    is_host_namespace: bool = True
    is_taken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFacts:
    """Hold what is known of the host name in the node id.

    Attributes:
        addresses: what it resolves to; empty where it does not.
        error: the resolver's words.
        reverse: the name that the first address resolves back to; None where there is none.
        port_error: why the port cannot be listened on; empty where it can, or was not tried.
    """

    addresses: tuple[str, ...] = ()
    error: str = ""
    reverse: str | None = None
    port_error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFacts:
    """Hold what was seen of Java, the NodeManager's command and its jars.

    Attributes:
        command: what will be run.
        command_path: where its first word is; None where it is nowhere.
        java_path: where java is.
        java_version: its major version; None where it did not tell.
        java_error: why not.
        hadoop_version: of the jars or the settings; None where neither tells.
    """

    command: tuple[str, ...]
    command_path: str | None = None
    java_path: str | None = None
    java_version: int | None = None
    java_error: str = ""
    hadoop_version: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFacts:
    """Hold what was seen of the recovery directory.

    Attributes:
        directory: as configured.
        mount_point, file_system: what the directory, or its deepest existing parent, is on.
        is_writable: it, or that parent, may be written.
        is_host_pid: this is the machine's own PID namespace.
        is_container: `/` is a container's, not the machine's.
        keep_on_stop: recovery.keep_on_stop.
        obstacle: cgroup version 1, why the runtime would end tasks together with this container; empty: it would not.
    """

    directory: str
    mount_point: str
    file_system: str
    is_writable: bool
    is_host_pid: bool
    is_container: bool
    keep_on_stop: bool
    obstacle: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """Hold everything.

    Attributes:
        cgroup: the tree.
        configuration_error: why the operator's files could not be read; then `overlay`, `name` and `recovery` are None.
        overlay: what will be rendered.
        name: the host name.
        programs: what will be run.
        recovery: None where recovery is off.
    """

    cgroup: CgroupFacts
    programs: ProgramFacts
    configuration_error: ConfigError | None = None
    overlay: Overlay | None = None
    name: NameFacts | None = None
    recovery: RecoveryFacts | None = None
