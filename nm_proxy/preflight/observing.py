# SPDX-License-Identifier: Apache-2.0
"""Look at the node for the checks; the only place of the preflight with I/O, and it changes nothing.

Every reader turns trouble into facts, so that one broken thing does not hide the others.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.detection import SELF_MOUNTINFO, Detection, detect
from nm_proxy.cgroup.errors import CgroupError
from nm_proxy.cgroup.files import Files, KernelFiles
from nm_proxy.cgroup.hierarchy import Hierarchy, unmounted_lookalikes
from nm_proxy.cgroup.holding import is_taken_by_another
from nm_proxy.cgroup.layout import Version
from nm_proxy.cgroup.mounts import Mount
from nm_proxy.cgroup.namespace import is_host_cgroup_namespace
from nm_proxy.nodemanager.processes import ProcessReader
from nm_proxy.parenting.detaching import OwnGroups, is_detaching
from nm_proxy.pid_namespace import is_host_pid_namespace
from nm_proxy.preflight.facts import CgroupFacts, GroupFacts, NameFacts, NodeFacts, ProgramFacts, RecoveryFacts
from nm_proxy.preflight.node_checks import is_identity_known
from nm_proxy.preflight.volumes import is_same_root, volume_of
from nm_proxy.rendering.directory import Around, Rendered, render
from nm_proxy.rendering.overlay import Overlay
from nm_proxy.settings import NodeSettings
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.configuration import can_be_seen

FIRST_MOUNTINFO: Final = "/proc/1/mountinfo"
_JAVA_SECONDS: Final = 30.0
_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_JAR: Final = re.compile(r"^hadoop-yarn-server-nodemanager-(\d+)\.(\d+)\.(\d+)[^/]*\.jar$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Hold what of the machine a test replaces.

    Attributes:
        environ: of this process.
        files: how to touch the cgroup tree.
        mounts: cgroup mounts; None reads them.
        may_write: whether this user may change a directory.
        mountinfo: text of /proc/self/mountinfo.
        first_mountinfo: text of /proc/1/mountinfo, empty where it cannot be read.
        processes: how to read /proc.
        own_pid: of this process.
        is_host_cgroup, is_host_pid: whether these are the machine's own namespaces.
    """

    environ: Mapping[str, str]
    files: Files = field(default_factory=KernelFiles)
    mounts: Iterable[Mount] | None = None
    may_write: Callable[[str], bool] = lambda path: os.access(path, os.W_OK)
    mountinfo: Callable[[], str] = lambda: _read(SELF_MOUNTINFO)
    first_mountinfo: Callable[[], str] = lambda: _read_or_nothing(FIRST_MOUNTINFO)
    processes: ProcessReader = field(default_factory=ProcessReader)
    own_pid: int = field(default_factory=os.getpid)
    is_host_cgroup: Callable[[], bool] = is_host_cgroup_namespace
    is_host_pid: Callable[[], bool] = is_host_pid_namespace


def _read(path: str) -> str:
    return Path(path).read_text("utf-8", "surrogateescape")


def _read_or_nothing(path: str) -> str:
    try:
        return _read(path)
    except OSError:
        return ""


def machine_name() -> str:
    """Give this machine's full host name, without asking a name server for what the kernel knows."""
    name = socket.gethostname()
    return name if "." in name else socket.getfqdn(name)


def find_tree(settings: NodeSettings, around: Surroundings) -> Detection:
    """Find the cgroup tree as the agent will.

    Raises:
        CgroupError: it was not found.
    """
    cgroup = settings.cgroup
    return detect(
        str(cgroup.root), mounts=around.mounts, files=around.files, driver=cgroup.driver, hierarchy=cgroup.hierarchy
    )


def find_tree_or_none(settings: NodeSettings, around: Surroundings) -> Detection | None:
    """Find the cgroup tree for a rendering, which leaves keys about it out where there is none."""
    try:
        return find_tree(settings, around)
    except CgroupError:
        return None


def render_here(settings: NodeSettings, around: Surroundings, detection: Detection | None) -> Rendered:
    """Render with this machine's name.

    Raises:
        ConfigError: the operator's files are wrong.
    """
    user = settings.hadoop.user or around.environ.get("USER") or "root"
    return render(settings, Around(environ=around.environ, user=user, host_name=machine_name(), detection=detection))


def observe(settings: NodeSettings, command: Sequence[str], around: Surroundings, *, tries_port: bool) -> NodeFacts:
    """Look at everything.

    Args:
        settings: this program's.
        command: what runs the NodeManager.
        around: the machine.
        tries_port: False while a NodeManager runs, which has the port.
    """
    cgroup = observe_cgroup(settings, around)
    overlay: Overlay | None = None
    error: ConfigError | None = None
    try:
        overlay = render_here(settings, around, cgroup.detection).overlay
    except ConfigError as caught:
        error = caught
    return NodeFacts(
        cgroup=cgroup,
        programs=observe_programs(settings, command, around.environ),
        configuration_error=error,
        overlay=overlay,
        name=observe_name(overlay, tries_port=tries_port) if overlay and is_identity_known(overlay) else None,
        recovery=_observe_recovery(settings, cgroup, overlay, around),
    )


def observe_cgroup(settings: NodeSettings, around: Surroundings) -> CgroupFacts:
    """Look at the tree."""
    root, mode = str(settings.cgroup.root), settings.parenting.mode
    try:
        detection = find_tree(settings, around)
    except CgroupError as error:
        return CgroupFacts(root=root, mode=mode, error=error)
    try:
        groups = tuple(_observe_group(one, detection, around) for one in detection.hierarchies.every)
        lookalikes = tuple(unmounted_lookalikes(detection.hierarchies, root, around.files))
    except CgroupError as error:
        return CgroupFacts(root=root, mode=mode, detection=detection, error=error)
    return CgroupFacts(
        root=root,
        mode=mode,
        detection=detection,
        groups=groups,
        lookalikes=lookalikes,
        is_host_namespace=around.is_host_cgroup(),
        is_taken=is_taken_by_another(detection.hierarchies.required("memory").at(detection.place.yarn)),
    )


def _observe_group(hierarchy: Hierarchy, detection: Detection, around: Surroundings) -> GroupFacts:
    files, place = around.files, detection.place
    best_effort, yarn = hierarchy.at(place.best_effort), hierarchy.at(place.yarn)
    has_yarn = files.exists(yarn)
    # kubelet does not keep its directory in every hierarchy; there the agent makes it itself.
    deepest = next((one for one in (yarn, best_effort) if files.exists(one)), hierarchy.mount_point)
    facts = GroupFacts(
        hierarchy=hierarchy,
        best_effort=best_effort if deepest != hierarchy.mount_point else deepest,
        yarn=yarn,
        has_yarn=has_yarn,
        is_writable=around.may_write(deepest),
    )
    if hierarchy.version is Version.V1:
        return facts
    source = f"{yarn}/cgroup.controllers" if has_yarn else f"{best_effort}/cgroup.subtree_control"
    return replace(
        facts,
        top_controllers=tuple(files.read(f"{hierarchy.mount_point}/cgroup.controllers").split()),
        available=frozenset(files.read(source).split()),
        best_effort_processes=len(files.read(f"{best_effort}/cgroup.procs").split()),
        yarn_processes=len(files.read(f"{yarn}/cgroup.procs").split()) if has_yarn else 0,
    )


def observe_name(overlay: Overlay, *, tries_port: bool) -> NameFacts:
    """Look the host name up, there and back, and try to listen on the port where the NodeManager will."""
    try:
        found = socket.getaddrinfo(overlay.host, overlay.port, type=socket.SOCK_STREAM)
    except OSError as error:
        return NameFacts(error=error.strerror or str(error))
    addresses = tuple(dict.fromkeys(str(one[4][0]) for one in found))
    try:
        reverse: str | None = socket.gethostbyaddr(addresses[0])[0]
    except OSError:
        reverse = None
    port_error = _listen_error(overlay.listens_at, overlay.port) if tries_port else ""
    return NameFacts(addresses=addresses, reverse=reverse, port_error=port_error)


def _listen_error(host: str, port: int) -> str:
    """Listen on the first address of a host for a moment, and say why that fails; empty where it does not."""
    try:
        (family, _, _, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def observe_programs(settings: NodeSettings, command: Sequence[str], environ: Mapping[str, str]) -> ProgramFacts:
    """Look for the command, for Java and for Hadoop's jars."""
    path = environ.get("PATH")
    home = environ.get("JAVA_HOME")
    java = shutil.which(f"{home}/bin/java") if home else shutil.which("java", path=path)
    version, error = _java_version(java) if java else (None, "")
    return ProgramFacts(
        command=tuple(command),
        command_path=shutil.which(command[0], path=path) if command else None,
        java_path=java,
        java_version=version,
        java_error=error,
        hadoop_version=find_hadoop_version(settings, command, environ),
    )


def _java_version(java: str) -> tuple[int | None, str]:
    try:
        done = subprocess.run(  # noqa: S603 - the image's own Java
            [java, "-version"], capture_output=True, timeout=_JAVA_SECONDS, check=False, text=True, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"does not run: {error}"
    found = _JAVA_VERSION.search(done.stderr + done.stdout)
    if found is None:
        return None, f"does not tell its version: {(done.stderr or done.stdout)[:128]!r}"
    return int(found[1]), ""


def find_hadoop_version(
    settings: NodeSettings, command: Sequence[str], environ: Mapping[str, str]
) -> tuple[int, int, int] | None:
    """Find the version by the settings, or by the NodeManager's jar where Hadoop's scripts or the command look."""
    if settings.hadoop.version is not None:
        major, minor, patch = map(int, settings.hadoop.version.split("."))
        return major, minor, patch
    for directory in _jar_directories(command, environ):
        try:
            names = sorted(path.name for path in directory.iterdir())
        except OSError:
            continue
        for name in names:
            if found := _JAR.match(name):
                return int(found[1]), int(found[2]), int(found[3])
    return None


def _jar_directories(command: Sequence[str], environ: Mapping[str, str]) -> list[Path]:
    homes = [environ[name] for name in ("HADOOP_YARN_HOME", "HADOOP_HOME") if environ.get(name)]
    yarn = shutil.which(command[0], path=environ.get("PATH")) if command else None
    if yarn is not None:
        homes.append(str(Path(yarn).resolve().parent.parent))  # HADOOP_HOME/bin/yarn
    entries = [entry for word in command if "/" in word for entry in word.split(":")]
    return [
        *(Path(home) / "share" / "hadoop" / "yarn" for home in homes),
        *(Path(entry).parent for entry in entries if entry.endswith(("/*", ".jar"))),
    ]


def _observe_recovery(
    settings: NodeSettings, cgroup: CgroupFacts, overlay: Overlay | None, around: Surroundings
) -> RecoveryFacts | None:
    if overlay is None or overlay.recovery_directory is None:
        return None
    directory = overlay.recovery_directory
    existing = next(path for path in (directory, *directory.parents) if can_be_seen(path))
    mountinfo, is_host_pid = around.mountinfo(), around.is_host_pid()
    volume = volume_of(existing.resolve(), mountinfo)
    return RecoveryFacts(
        directory=str(directory),
        mount_point=volume.mount_point,
        file_system=volume.file_system,
        is_writable=around.may_write(str(existing)),
        is_host_pid=is_host_pid,
        # In another PID namespace PID 1 is the container's own, and tells nothing of the machine.
        is_container=not is_host_pid or not is_same_root(mountinfo, around.first_mountinfo()),
        keep_on_stop=settings.recovery.keep_on_stop,
        obstacle=observe_obstacle(cgroup.mode, cgroup.detection, around) if cgroup.detection else "",
    )


def observe_obstacle(mode: ParentingMode, detection: Detection, around: Surroundings) -> str:
    """Say why tasks would end together with this container; empty where they would not."""
    if not is_detaching(mode, is_host_pid=True):
        return "with parenting.mode: executor tasks stay in this container's groups"
    own = OwnGroups(detection, around.files, around.processes, own_pid=around.own_pid)
    return next(own.obstacles(), "")
