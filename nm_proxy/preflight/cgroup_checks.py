# SPDX-License-Identifier: Apache-2.0
"""Judge the cgroup tree: is it there, is it the right one, can containers be made and limited in it; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.errors import (
    CgroupError,
    DriverAmbiguousError,
    InternalProcessError,
    KubeletNotFoundError,
    NotDelegatedError,
    PermissionDeniedError,
    TreeNotFoundError,
)
from nm_proxy.cgroup.holding import FIX
from nm_proxy.cgroup.layout import Version
from nm_proxy.exit_codes import ExitCode
from nm_proxy.preflight.facts import CgroupFacts, GroupFacts, NodeFacts
from nm_proxy.preflight.findings import Finding, doubtful, well, wrong

_CODES: Final[Mapping[type[CgroupError], ExitCode]] = {
    TreeNotFoundError: ExitCode.CGROUP_TREE,
    KubeletNotFoundError: ExitCode.CGROUP_DRIVER,
    DriverAmbiguousError: ExitCode.CGROUP_DRIVER,
    PermissionDeniedError: ExitCode.CGROUP_READ_ONLY,
    NotDelegatedError: ExitCode.CGROUP_DELEGATION,
    InternalProcessError: ExitCode.CGROUP_INTERNAL_PROCESSES,
}
_MOUNT_FIX: Final = "mount the host's /sys/fs/cgroup with readOnly: false, in a privileged container that runs as root"


def code_of(error: CgroupError) -> ExitCode:
    """Give the exit code of an error of the tree."""
    return _CODES.get(type(error), ExitCode.CGROUP_TREE)


def tree(facts: NodeFacts) -> Iterator[Finding]:
    """Check that version, driver and hierarchy were found out."""
    seen = facts.cgroup
    if seen.error is not None:
        yield _failed(seen.error)
    if seen.detection is None:
        return
    place = seen.detection.place
    versions = ", ".join(f"{one.mount_point} ({one.version.value})" for one in seen.detection.hierarchies.every)
    yield well(ExitCode.CGROUP_TREE, seen.root, f"cgroup {seen.detection.hierarchies.version.value}: {versions}")
    driver = f"driver {place.driver.value}" if place.driver else "path from cgroup.hierarchy"
    yield well(ExitCode.CGROUP_DRIVER, f"/{place.yarn}", f"{driver}, containers belong here")


def writable(facts: NodeFacts) -> Iterator[Finding]:
    """Check that groups can be made in every hierarchy."""
    for group in facts.cgroup.groups:
        if group.hierarchy.read_only:
            yield wrong(
                ExitCode.CGROUP_READ_ONLY,
                group.hierarchy.mount_point,
                "is mounted read-only",
                "a writable mount",
                _MOUNT_FIX,
            )
        elif not group.is_writable:
            yield wrong(
                ExitCode.CGROUP_READ_ONLY,
                group.deepest,
                "may not be written by this user",
                "a directory in which groups can be made",
                _MOUNT_FIX,
            )
        else:
            yield well(ExitCode.CGROUP_READ_ONLY, group.deepest, "writable")


def delegated(facts: NodeFacts) -> Iterator[Finding]:
    """Check, for version 2, that cpu and memory are enabled where containers need them."""
    for group in _version_2(facts.cgroup):
        needed = group.hierarchy.controllers & {"cpu", "memory"}
        for controller in sorted(needed - group.available):
            yield wrong(
                ExitCode.CGROUP_DELEGATION,
                f"{group.best_effort}/cgroup.subtree_control",
                f"does not name {controller}, so {group.yarn} cannot have it",
                f"+{controller}",
                f"write +{controller} to it, from the top of the tree downwards; kubelet does so where the controller "
                "is enabled at the top",
            )
        if needed <= group.available:
            yield well(ExitCode.CGROUP_DELEGATION, group.best_effort, f"enabled below: {', '.join(sorted(needed))}")
        yield from _last_controller(facts.cgroup, group)


def bounded(facts: NodeFacts) -> Iterator[Finding]:
    """Check, for version 2, that tasks may be moved from this container's group to theirs."""
    for group in _version_2(facts.cgroup):
        if group.hierarchy.is_bounded and not facts.cgroup.is_host_namespace:
            yield wrong(
                ExitCode.CGROUP_DELEGATION,
                f"{group.yarn}/cgroup.procs",
                "is outside this container's own cgroup namespace, which no process may be moved out of: "
                f"{group.hierarchy.mount_point} is mounted with nsdelegate",
                "the host's cgroup namespace",
                "run the container privileged, to which container runtimes of Kubernetes give the host's cgroup "
                "namespace; with Docker add --cgroupns=host",
            )


def _last_controller(seen: CgroupFacts, group: GroupFacts) -> Iterator[Finding]:
    """Hadoop splits the list at blanks and keeps the line feed with the last name, which it then does not know."""
    last = group.top_controllers[-1:]
    if seen.mode is ParentingMode.EXECUTOR and last and last[0] in ("cpu", "memory"):
        yield wrong(
            ExitCode.CGROUP_DELEGATION,
            f"{group.hierarchy.mount_point}/cgroup.controllers",
            f"ends with {last[0]}, which Hadoop 3.5.0 does not recognise in the last place",
            "a further controller behind it, such as pids",
            "delegate pids too, or set parenting.mode to adopt",
        )


def shadowed(facts: NodeFacts) -> Iterator[Finding]:
    """Check that nothing beside version 2 would be taken for a version 1 tree."""
    seen = facts.cgroup
    for path in seen.lookalikes:
        is_fatal = seen.mode is ParentingMode.EXECUTOR
        judged = wrong if is_fatal else doubtful
        yield judged(
            ExitCode.CGROUP_SHADOWED,
            path,
            "looks like a version 1 hierarchy but is not mounted"
            + (", and Hadoop would limit nothing in it" if is_fatal else "; nm-proxy itself passes it over"),
            "no such directory beside version 2",
            "remove the directory (it holds no limits), or mount the host's tree at a clean path",
        )
    if seen.detection is not None and not seen.lookalikes:
        yield well(ExitCode.CGROUP_SHADOWED, seen.root, "nothing else looks like a hierarchy")


def internal_processes(facts: NodeFacts) -> Iterator[Finding]:
    """Check, for version 2, that no process sits where only groups may be."""
    for group in _version_2(facts.cgroup):
        for directory, count in (
            (group.best_effort, group.best_effort_processes),
            (group.yarn, group.yarn_processes),
        ):
            if count:
                yield wrong(
                    ExitCode.CGROUP_INTERNAL_PROCESSES,
                    f"{directory}/cgroup.procs",
                    f"lists {count} processes",
                    "none: the kernel enables no controller below a group that has processes",
                    "move them into a group below; a NodeManager must not run in this directory itself",
                )
        if not group.best_effort_processes and not group.yarn_processes:
            yield well(ExitCode.CGROUP_INTERNAL_PROCESSES, group.deepest, "holds groups only")


def taken(facts: NodeFacts) -> Iterator[Finding]:
    """Check that no other NodeManager of the node has its containers there."""
    seen = facts.cgroup
    if seen.detection is None:
        return
    where = f"/{seen.detection.place.yarn}"
    if seen.is_taken:
        yield wrong(
            ExitCode.CGROUP_TAKEN,
            where,
            "another container's nm-proxy works in it, and each would end the other's tasks as unknown",
            "a directory of its own for each NodeManager",
            FIX,
        )
    else:
        yield well(ExitCode.CGROUP_TAKEN, where, "no other nm-proxy works in it")


def _version_2(seen: CgroupFacts) -> Iterator[GroupFacts]:
    return (group for group in seen.groups if group.hierarchy.version is Version.V2)


def _failed(error: CgroupError) -> Finding:
    return wrong(
        code_of(error),
        error.path,
        error.what,
        "the host's tree with kubelet's best-effort directory in it",
        error.fix or "mount the host's /sys/fs/cgroup and name it with cgroup.root",
    )
