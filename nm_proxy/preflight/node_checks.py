# SPDX-License-Identifier: Apache-2.0
"""Judge what the NodeManager will be: its name, port, size, programs and recovery directory; pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from nm_proxy.agent_settings import ParentingMode
from nm_proxy.cgroup.layout import Version
from nm_proxy.exit_codes import ExitCode
from nm_proxy.preflight.facts import CgroupFacts, NodeFacts, RecoveryFacts
from nm_proxy.preflight.findings import Finding, doubtful, well, wrong
from nm_proxy.rendering import keys
from nm_proxy.rendering.overlay import Overlay
from yarn_copilot.hadoop import configuration_defaults as yarn_keys
from yarn_copilot.hadoop.addresses import Address

MAX_HOST_NAME: Final = 64
"""Characters of a host name that the kernel holds (HOST_NAME_MAX); setHostnameAsFQDN fails above it."""

OLDEST_HADOOP: Final = (3, 3, 1)
VERSION_2_HADOOP: Final = (3, 5, 0)
"""The first whose executor knows cgroup version 2."""

_LABEL: Final = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$")


def configuration(facts: NodeFacts) -> Iterator[Finding]:
    """Check that the operator's files can be read."""
    if facts.configuration_error is not None:
        yield wrong(
            ExitCode.CONFIGURATION,
            "hadoop.conf_dir",
            str(facts.configuration_error),
            "a Hadoop configuration directory with a yarn-site.xml",
            "mount it and name it with hadoop.conf_dir, or mend the named key",
        )


def pages(facts: NodeFacts) -> Iterator[Finding]:
    """Check that the NodeManager's pages will answer, without whose figures nothing can be limited."""
    if facts.overlay is None or not facts.overlay.page_login:
        return
    login = facts.overlay.page_login
    is_simple = login == "a name"
    yield doubtful(
        ExitCode.CONFIGURATION,
        keys.HTTP_ANONYMOUS if is_simple else yarn_keys.HTTP_AUTHENTICATION,
        f"lets the NodeManager's pages ask for {login[:128]}, so the agent learns no figures and limits nothing",
        "pages that the agent can read, with simple authentication",
        "set node_manager.user to a name"
        if is_simple
        else f"set {yarn_keys.HTTP_AUTHENTICATION} to simple in the yarn-site.xml of the NodeManagers, which wins over "
        "core-site.xml, and let nobody else reach their pages",
    )


def host_name(facts: NodeFacts) -> Iterator[Finding]:
    """Check the host part of the node id."""
    if facts.overlay is None:
        return
    host = facts.overlay.host
    why = _wrong_name(host)
    if why:
        yield wrong(
            ExitCode.HOST_NAME,
            keys.ADDRESS,
            f"{host[:128]!r} {why}",
            f"labels of letters, digits and '-', at most {MAX_HOST_NAME} characters in all",
            "shorten the names of pod, service or namespace, leave setHostnameAsFQDN off, or set identity.host_name",
        )
    else:
        yield well(ExitCode.HOST_NAME, host, f"{len(host)} characters")


def port(facts: NodeFacts) -> Iterator[Finding]:
    """Check the port part of the node id; the rendering always fixes one, so what can go wrong is that it is taken."""
    if facts.overlay is None or facts.name is None:
        return
    if facts.name.port_error:
        yield wrong(
            ExitCode.PORT,
            str(Address(facts.overlay.listens_at, facts.overlay.port)),
            f"cannot be listened on: {facts.name.port_error}",
            "a free port of this machine, the same at every start",
            "end the other NodeManager of this node, set identity.port, or mend the host name's address; where the "
            f"name is the node's and the pod has an address of its own (hostPort), set {keys.BIND_HOST} to 0.0.0.0",
        )
    else:
        yield well(ExitCode.PORT, keys.ADDRESS, f"fixed: {facts.overlay.port}")


def resolution(facts: NodeFacts) -> Iterator[Finding]:
    """Check that the ResourceManager's way from name to address exists at all."""
    if facts.overlay is None or facts.name is None:
        return
    host, name = facts.overlay.host, facts.name
    if not name.addresses:
        yield wrong(
            ExitCode.RESOLUTION,
            host,
            f"does not resolve: {name.error}",
            "an address of this pod, from here and from the ResourceManager",
            "give the pod a headless Service with publishNotReadyAddresses: true, or set identity.host_name to an "
            "address",
        )
    elif all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in name.addresses):
        yield doubtful(
            ExitCode.RESOLUTION,
            host,
            f"resolves to {', '.join(name.addresses)}, which no other machine reaches",
            "an address that the ResourceManager and applications reach",
            "mend /etc/hosts of the container or set identity.host_name",
        )
    else:
        back = f", which is {name.reverse}" if name.reverse else ", which has no name"
        yield well(ExitCode.RESOLUTION, host, f"resolves to {name.addresses[0]}{back}")


def capacity(facts: NodeFacts) -> Iterator[Finding]:
    """Check that the ResourceManager will take the registration."""
    if facts.overlay is None:
        return
    overlay = facts.overlay
    for what, have, least, setting, key in (
        ("MiB", overlay.memory_mib, overlay.minimum_memory_mib, "capacity.memory_mib", yarn_keys.MINIMUM_MEMORY_MIB),
        ("vcores", overlay.vcores, overlay.minimum_vcores, "capacity.vcores", yarn_keys.MINIMUM_VCORES),
    ):
        if have < least:
            yield wrong(
                ExitCode.CAPACITY,
                setting,
                f"is {have}, below {key} = {least}; the ResourceManager would answer SHUTDOWN",
                f"at least {least} {what}",
                f"leave {setting} unset, or lower {key} at the ResourceManager and in the mounted files",
            )
        else:
            yield well(ExitCode.CAPACITY, setting, f"registers with {have} {what}, least {least}")


def programs(facts: NodeFacts) -> Iterator[Finding]:
    """Check that the NodeManager's command and Java are there, and new enough."""
    seen = facts.programs
    if seen.command_path is None:
        yield wrong(
            ExitCode.JAVA,
            seen.command[0] if seen.command else "the command",
            "is not an executable file on PATH",
            "the program that runs the NodeManager",
            "name it behind --, for example: nm-proxy run -- /opt/hadoop/bin/yarn nodemanager",
        )
    needed = 17 if (seen.hadoop_version or (0, 0, 0)) >= VERSION_2_HADOOP else 8
    if seen.java_path is None or seen.java_version is None:
        yield wrong(
            ExitCode.JAVA,
            seen.java_path or "JAVA_HOME",
            seen.java_error or "there is no java in JAVA_HOME/bin or on PATH",
            f"Java {needed} or newer",
            "set JAVA_HOME in the image to a Java installation",
        )
    elif seen.java_version < needed:
        yield wrong(
            ExitCode.JAVA,
            seen.java_path,
            f"is Java {seen.java_version}",
            f"Java {needed} or newer, which this Hadoop is built for",
            "set JAVA_HOME in the image to a newer Java",
        )
    else:
        yield well(ExitCode.JAVA, seen.java_path, f"Java {seen.java_version}")


def hadoop_version(facts: NodeFacts) -> Iterator[Finding]:
    """Check that this Hadoop can do what the settings ask for."""
    version = facts.programs.hadoop_version
    detection = facts.cgroup.detection
    is_version_2 = detection is not None and any(one.version is Version.V2 for one in detection.hierarchies.every)
    needs_new = facts.cgroup.mode is ParentingMode.EXECUTOR and is_version_2
    if version is None:
        judged = wrong if needs_new else doubtful
        yield judged(
            ExitCode.HADOOP_VERSION,
            "hadoop.version",
            "the version of the NodeManager is unknown: no hadoop-yarn-server-nodemanager-*.jar was found",
            "a known version",
            "set hadoop.version, or HADOOP_HOME to the installation",
        )
        return
    text = ".".join(map(str, version))
    if version < OLDEST_HADOOP:
        yield wrong(
            ExitCode.HADOOP_VERSION,
            "hadoop.version",
            f"is {text}, which does not take the ResourceManager's updates of its capacity reliably",
            f"{'.'.join(map(str, OLDEST_HADOOP))} or newer",
            "use a newer Hadoop",
        )
    elif needs_new and version < VERSION_2_HADOOP:
        yield wrong(
            ExitCode.HADOOP_VERSION,
            "parenting.mode",
            f"is executor, but the executor of Hadoop {text} does not know cgroup version 2",
            f"Hadoop {'.'.join(map(str, VERSION_2_HADOOP))} or newer, or parenting.mode adopt",
            "set parenting.mode to adopt",
        )
    else:
        yield well(ExitCode.HADOOP_VERSION, "hadoop.version", text)


def recovery(facts: NodeFacts) -> Iterator[Finding]:
    """Check that what the NodeManager remembers outlives the container."""
    seen = facts.recovery
    if seen is None:
        return
    fix = "mount an emptyDir (or, with hostPID, a hostPath) there, or set recovery.directory or recovery.enabled: false"
    if seen.mount_point == "/" and seen.is_container:
        yield wrong(
            ExitCode.RECOVERY,
            seen.directory,
            f"is in the container's own layer ({seen.file_system}), which goes with the container",
            "a directory on a volume",
            fix,
        )
    elif not seen.is_writable:
        yield wrong(ExitCode.RECOVERY, seen.directory, "cannot be written", "a writable directory", fix)
    else:
        yield well(ExitCode.RECOVERY, seen.directory, f"on {seen.mount_point} ({seen.file_system})")
    yield from _keeping(seen, facts.cgroup)


def _keeping(seen: RecoveryFacts, cgroup: CgroupFacts) -> Iterator[Finding]:
    if not seen.keep_on_stop:
        return
    if not seen.is_host_pid:
        yield wrong(
            ExitCode.RECOVERY,
            "recovery.keep_on_stop",
            "is true in a PID namespace of its own, whose end kills every container",
            "hostPID: true",
            "set hostPID: true for the pod, or recovery.keep_on_stop: false",
        )
        return
    if seen.obstacle and cgroup.detection is not None and cgroup.detection.hierarchies.version is Version.V1:
        yield doubtful(
            ExitCode.RECOVERY,
            "recovery.keep_on_stop",
            "is true on cgroup version 1, where the container runtime ends all tasks together with this container: "
            + seen.obstacle,
            "a task that can leave this container in every hierarchy",
            "mount the host's whole /sys/fs/cgroup writable, in the host's cgroup namespace, with CAP_SYS_ADMIN (or "
            "privileged) and parenting.mode: adopt; or set recovery.keep_on_stop: false and let a stop drain",
        )
    if seen.file_system in {"tmpfs", "ramfs"}:
        yield doubtful(
            ExitCode.RECOVERY,
            seen.directory,
            f"is on {seen.file_system}, which a new pod does not find again if it is an emptyDir",
            "a hostPath",
            "mount a directory of the machine",
        )


def _wrong_name(host: str) -> str:
    """Say what is wrong with a host name; empty where nothing is."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return ""
    if len(host) > MAX_HOST_NAME:
        return f"has {len(host)} characters"
    bad = next((label for label in host.split(".") if not _LABEL.match(label)), None)
    return "" if bad is None else f"has the label {bad[:64]!r}"


def is_identity_known(overlay: Overlay) -> bool:
    """Tell whether there is a host name to look up."""
    return not _wrong_name(overlay.host)
