# SPDX-License-Identifier: Apache-2.0
"""Render Hadoop configuration folders: one for the RM and its clients, one for each NodeManager.

Queues: `root.batch` (60 %) with the leaves `etl` (70 %) and `adhoc` (30 %), and the leaf `root.interactive` (40 %).
Each may grow to the whole cluster, and one user may fill a queue.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from lab.hadoop.options import YarnOptions

DEFAULT_QUEUE: Final = "root.batch.etl"
LEAF_QUEUES: Final = ("root.batch.etl", "root.batch.adhoc", "root.interactive")
HOST: Final = "127.0.0.1"
_CAPACITIES: Final = {"root.batch": 60, "root.interactive": 40, "root.batch.etl": 70, "root.batch.adhoc": 30}

LOG4J: Final = """\
log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
log4j.logger.org.apache.hadoop.metrics2=WARN
log4j.logger.org.eclipse.jetty=WARN
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerPorts:
    """Name the ports of the ResourceManager."""

    client: int
    scheduler: int
    tracker: int
    admin: int
    web: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePorts:
    """Name the ports of a NodeManager."""

    container_manager: int
    localizer: int
    web: int
    collector: int


def write_manager_conf(folder: Path, ports: ManagerPorts, options: YarnOptions, state_folder: Path) -> None:
    """Write the folder that the RM, its clients and the controller read."""
    folder.mkdir(parents=True, exist_ok=True)
    write_site(folder / "core-site.xml", core_site(state_folder))
    write_site(folder / "yarn-site.xml", {**yarn_site(ports, options, state_folder), **options.properties})
    write_site(folder / "capacity-scheduler.xml", capacity_scheduler())
    folder.joinpath("log4j.properties").write_text(LOG4J)


def write_node_conf(folder: Path, manager: Mapping[str, str], own: Mapping[str, str], state_folder: Path) -> None:
    """Write the folder of one NodeManager: the RM's properties plus its own."""
    folder.mkdir(parents=True, exist_ok=True)
    write_site(folder / "core-site.xml", core_site(state_folder))
    write_site(folder / "yarn-site.xml", {**manager, **own})
    folder.joinpath("log4j.properties").write_text(LOG4J)


def core_site(state_folder: Path) -> dict[str, str]:
    """Return core-site.xml: local files only, simple authentication."""
    return {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": str(state_folder / "tmp"),
        "hadoop.security.authentication": "simple",
        "ipc.client.connect.max.retries": "5",
        "ipc.client.connect.retry.interval": "200",
    }


def yarn_site(ports: ManagerPorts, options: YarnOptions, state_folder: Path) -> dict[str, str]:
    """Return the cluster's yarn-site.xml."""
    return {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.resourcemanager.address": f"{HOST}:{ports.client}",
        "yarn.resourcemanager.scheduler.address": f"{HOST}:{ports.scheduler}",
        "yarn.resourcemanager.resource-tracker.address": f"{HOST}:{ports.tracker}",
        "yarn.resourcemanager.admin.address": f"{HOST}:{ports.admin}",
        "yarn.resourcemanager.webapp.address": f"{HOST}:{ports.web}",
        "yarn.resourcemanager.scheduler.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler"
        ),
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": str(options.heartbeat_millis),
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(options.expiry_millis),
        "yarn.scheduler.include-port-in-node-name": "true",
        "yarn.scheduler.minimum-allocation-mb": str(options.minimum_memory_mib),
        "yarn.scheduler.minimum-allocation-vcores": str(options.minimum_vcores),
        "yarn.scheduler.maximum-allocation-mb": str(options.maximum_memory_mib),
        "yarn.scheduler.maximum-allocation-vcores": str(options.maximum_vcores),
        "yarn.acl.enable": "true",
        "yarn.admin.acl": options.administrators,
        "yarn.resourcemanager.recovery.enabled": _flag(options.recover_applications),
        "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "500",
        "yarn.resourcemanager.store.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
        ),
        "yarn.resourcemanager.fs.state-store.uri": f"file://{state_folder / 'rm-state'}",
        # All servers are started at once: whoever is early asks again soon.
        "yarn.resourcemanager.connect.retry-interval.ms": "200",
        "yarn.client.failover-sleep-base-ms": "100",
        "yarn.client.failover-sleep-max-ms": "500",
        "yarn.timeline-service.enabled": "false",
        "yarn.log-aggregation-enable": "false",
    }


def node_site(*, host_name: str, ports: NodePorts, options: YarnOptions, folder: Path) -> dict[str, str]:
    """Return what a NodeManager's yarn-site.xml has beyond the cluster's."""
    return {
        "yarn.nodemanager.hostname": host_name,
        "yarn.nodemanager.address": f"{host_name}:{ports.container_manager}",
        "yarn.nodemanager.localizer.address": f"{host_name}:{ports.localizer}",
        "yarn.nodemanager.webapp.address": f"{host_name}:{ports.web}",
        "yarn.nodemanager.collector-service.address": f"{host_name}:{ports.collector}",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "containers"),
        "yarn.nodemanager.resource.memory-mb": str(options.floor_memory_mib),
        "yarn.nodemanager.resource.cpu-vcores": str(options.floor_vcores),
        "yarn.nodemanager.container-executor.class": (
            "org.apache.hadoop.yarn.server.nodemanager.DefaultContainerExecutor"
        ),
        "yarn.nodemanager.recovery.enabled": _flag(options.recover_containers),
        "yarn.nodemanager.recovery.dir": str(folder / "recovery"),
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.sleep-delay-before-sigkill.ms": "100",
        "yarn.nodemanager.delete.debug-delay-sec": "0",
    }


def capacity_scheduler() -> dict[str, str]:
    """Return capacity-scheduler.xml with the lab's queues."""
    prefix = "yarn.scheduler.capacity"
    properties = {
        f"{prefix}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        f"{prefix}.maximum-applications": "1000",
        f"{prefix}.maximum-am-resource-percent": "1.0",
        f"{prefix}.node-locality-delay": "0",
        f"{prefix}.root.queues": "batch,interactive",
        f"{prefix}.root.batch.queues": "etl,adhoc",
        f"{prefix}.root.acl_submit_applications": "*",
    }
    for queue, percent in _CAPACITIES.items():
        properties[f"{prefix}.{queue}.capacity"] = str(percent)
        properties[f"{prefix}.{queue}.maximum-capacity"] = "100"
        properties[f"{prefix}.{queue}.state"] = "RUNNING"
        properties[f"{prefix}.{queue}.user-limit-factor"] = "100"
    return properties


def hosts_text(names: Mapping[str, str]) -> str:
    """Render the hosts file that replaces name resolution in the lab's Java processes.

    Args:
        names: host name to address; each address has one name, so that looking up in reverse is exact.
    """
    # Hadoop asks for the machine's own name too; the first name of an address answers in reverse.
    known = {"localhost": HOST, socket.gethostname(): HOST, **names}
    return "".join(f"{address} {name}\n" for name, address in known.items())


def write_site(path: Path, properties: Mapping[str, str]) -> None:
    """Write one site file."""
    root = ElementTree.Element("configuration")
    for name, value in sorted(properties.items()):
        element = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(element, "name").text = name
        ElementTree.SubElement(element, "value").text = value
    ElementTree.indent(root)
    path.write_text(ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n")


def _flag(value: bool) -> str:
    return "true" if value else "false"
