# SPDX-License-Identifier: Apache-2.0
"""Run two ResourceManagers as a pair, with NodeManagers that follow the active one.

With ZooKeeper (its server is among Hadoop's jars) the embedded electors choose, state is kept in ZooKeeper and the
deposed one is fenced. Without, `make_active` and `make_standby` do what an administrator does, and state is in files.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lab.hadoop import conf, java
from lab.hadoop.conf import ManagerPorts, NodePorts
from lab.hadoop.jars import ensure_jars
from lab.hadoop.java import Java
from lab.hadoop.manager_log import ManagerLog
from lab.hadoop.node_manager import NodeIdentity, NodeManager
from lab.hadoop.options import YarnOptions
from lab.hadoop.zookeeper import start_zookeeper
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.grouped import GroupedServers
from lab.processes.process import Command, ServerProcess
from lab.processes.progress import Progress
from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.model import HAServiceState
from yarn_copilot.hadoop.protocols import ha_service

IDS: Final = ("rm1", "rm2")
READY_TIMEOUT_SECONDS: Final = 90.0
ZOOKEEPER_SESSION_MILLIS: Final = 2_000
NODE_MANAGER_FAILOVER: Final = {
    # Time between a NodeManager's tries; by default yarn.resourcemanager.connect.retry-interval.ms, 30 s.
    "yarn.client.failover-sleep-base-ms": "50",
    "yarn.client.failover-sleep-max-ms": "100",
    # A heartbeat to a ResourceManager that was frozen would hold a NodeManager for two minutes.
    "ipc.client.rpc-timeout.ms": "2000",
    "ipc.ping.interval": "1000",
}
"""What decides how soon NodeManagers are at the new active one; docs/hadoop.md recommends these keys."""
_BY_USER: Final = b"\x0a\x02\x08\x00"
"""StateChangeRequestInfo with the source REQUEST_BY_USER."""


class Pair(GroupedServers):
    """Be rm1, rm2, NodeManagers and perhaps ZooKeeper; a context manager.

    Attributes:
        conf_dir: Hadoop's configuration folder for clients.
        resource_managers: id to process.
        node_managers: the NodeManagers, RUNNING at the active one.
    """

    def __init__(self, *, zookeeper: bool, version: str = "3.5.0", node_managers: int = 1) -> None:
        """Say how the active one is chosen."""
        self._with_zookeeper = zookeeper
        self._version = version
        self._count = node_managers
        self.resource_managers: dict[str, ServerProcess] = {}
        self.node_managers: list[NodeManager] = []

    def admin_address(self, rm_id: str) -> Address:
        """Give the administration port of one of them."""
        return Address(conf.HOST, self._ports[rm_id].admin)

    def client_address(self, rm_id: str) -> Address:
        """Give the client port of one of them; only the active one listens there."""
        return Address(conf.HOST, self._ports[rm_id].client)

    def state_of(self, rm_id: str) -> HAServiceState | None:
        """Ask one for its state; None where it does not answer."""
        try:
            body = asyncio.run(self._ha_call(rm_id, ha_service.GET_SERVICE_STATUS, b""))
        except errors.HadoopRPCError:
            return None
        return ha_service.decode_service_status(body).state

    def active(self) -> str:
        """Give the id of the active one, waiting until there is one."""

        def find() -> str | None:
            states = {rm_id: self.state_of(rm_id) for rm_id in IDS}
            found = [rm_id for rm_id, state in states.items() if state is HAServiceState.ACTIVE]
            if not found:
                raise probes.NotReadyError(f"states are {states}")
            return found[0]

        found = probes.wait_until(find, what="one is active", timeout_seconds=READY_TIMEOUT_SECONDS)
        return str(found)

    def make_active(self, rm_id: str) -> None:
        """Do what `rmadmin -transitionToActive` does; only without ZooKeeper."""
        asyncio.run(self._ha_call(rm_id, "transitionToActive", _BY_USER))

    def make_standby(self, rm_id: str) -> None:
        """Do what `rmadmin -transitionToStandby` does; only without ZooKeeper."""
        asyncio.run(self._ha_call(rm_id, "transitionToStandby", _BY_USER))

    def wait_for_nodes(self) -> None:
        """Wait until all NodeManagers are registered somewhere (by the ResourceManagers' logs)."""
        for manager in self.node_managers:
            probes.wait_until(
                functools.partial(self._has_registered, manager.node_id),
                what=f"{manager.node_id} is RUNNING",
                timeout_seconds=READY_TIMEOUT_SECONDS,
                processes=[manager.process],
            )

    def log_of(self, rm_id: str) -> ManagerLog:
        """Read the log of one of them."""
        return ManagerLog(rm_id, self._text_of(rm_id))

    def accepted_updates(self) -> dict[str, int]:
        """Count the updateNodeResource calls that each has carried out, by its audit log."""
        return {rm_id: self.log_of(rm_id).accepted_updates() for rm_id in IDS}

    def applied_memory(self, node_id: str) -> list[int]:
        """List a node's totals, MiB, in the order in which the schedulers of both took them."""
        merged = itertools.chain.from_iterable(self.log_of(rm_id).applied_memory(node_id) for rm_id in IDS)
        return [memory_mib for _, memory_mib in sorted(merged, key=lambda entry: entry[0])]

    def _text_of(self, rm_id: str) -> str:
        return self.resource_managers[rm_id].log_path.read_text(errors="replace")

    def _has_registered(self, node_id: str) -> bool:
        pattern = f"{node_id} Node Transitioned from NEW to RUNNING"
        return any(pattern in self._text_of(rm_id) for rm_id in IDS)

    def _answers(self, rm_id: str) -> bool:
        return self.state_of(rm_id) is not None

    def _start(self, group: ProcessGroup) -> None:
        jars = ensure_jars(self._version, Progress(quiet=True))
        folder = group.state.folder("yarn")
        names = list(ManagerPorts.__dataclass_fields__)
        self._ports = {rm_id: ManagerPorts(**{name: group.ports.take() for name in names}) for rm_id in IDS}
        identities = [_identity(group, number + 1) for number in range(self._count)]
        hosts = folder / "hosts"
        hosts.write_text(conf.hosts_text({each.host_name: each.address for each in identities}))
        programs = Java(jars=jars, hosts_file=hosts, temporary_folder=group.state.folder("tmp"))
        zookeeper_port = start_zookeeper(group, programs) if self._with_zookeeper else None
        options = YarnOptions(heartbeat_millis=200, properties={})
        site = self._site(options, folder, zookeeper_port)
        self.conf_dir = folder / "conf"
        self._write_conf(self.conf_dir, site, folder)
        for rm_id in IDS:
            self._add_resource_manager(group, programs, rm_id, site, folder)
        for process in self.resource_managers.values():
            process.start()
        for identity in identities:
            manager = NodeManager(group, identity, java_programs=programs, manager_site=site, options=options)
            self.node_managers.append(manager)
            manager.start()
        for rm_id in IDS:
            probes.wait_until(
                functools.partial(self._answers, rm_id),
                what=f"{rm_id} answers",
                timeout_seconds=READY_TIMEOUT_SECONDS,
                processes=[self.resource_managers[rm_id]],
            )
        if not self._with_zookeeper:
            self.make_active(IDS[0])
        self.active()
        self.wait_for_nodes()

    def _add_resource_manager(
        self, group: ProcessGroup, programs: Java, rm_id: str, site: Mapping[str, str], folder: Path
    ) -> None:
        own = folder / rm_id
        self._write_conf(own, {**site, "yarn.resourcemanager.ha.id": rm_id}, folder)
        self.resource_managers[rm_id] = group.add(
            Command(
                name=rm_id,
                argv=programs.command(java.MAIN_RESOURCE_MANAGER, own, heap_mib=400),
                log_path=group.state.log_path(rm_id),
                environment={"HADOOP_HOME": str(folder), "HADOOP_YARN_HOME": str(folder)},
            )
        )

    def _site(self, options: YarnOptions, folder: Path, zookeeper_port: int | None) -> dict[str, str]:
        site = conf.yarn_site(self._ports[IDS[0]], options, folder)
        prefix = "yarn.resourcemanager"
        for key in ("hostname", "address", "scheduler.address", "resource-tracker.address", "admin.address"):
            site.pop(f"{prefix}.{key}")
        site.pop(f"{prefix}.webapp.address")
        for rm_id, ports in self._ports.items():
            site |= {
                f"{prefix}.hostname.{rm_id}": conf.HOST,
                f"{prefix}.address.{rm_id}": f"{conf.HOST}:{ports.client}",
                f"{prefix}.scheduler.address.{rm_id}": f"{conf.HOST}:{ports.scheduler}",
                f"{prefix}.resource-tracker.address.{rm_id}": f"{conf.HOST}:{ports.tracker}",
                f"{prefix}.admin.address.{rm_id}": f"{conf.HOST}:{ports.admin}",
                f"{prefix}.webapp.address.{rm_id}": f"{conf.HOST}:{ports.web}",
            }
        site |= {
            f"{prefix}.ha.enabled": "true",
            f"{prefix}.ha.rm-ids": ",".join(IDS),
            f"{prefix}.cluster-id": "pair",
            **NODE_MANAGER_FAILOVER,
            f"{prefix}.ha.automatic-failover.enabled": "true" if zookeeper_port else "false",
        }
        if zookeeper_port:
            site |= {
                "hadoop.zk.address": f"{conf.HOST}:{zookeeper_port}",
                "hadoop.zk.timeout-ms": str(ZOOKEEPER_SESSION_MILLIS),
                # The elector reads the older names.
                f"{prefix}.zk-address": f"{conf.HOST}:{zookeeper_port}",
                f"{prefix}.zk-timeout-ms": str(ZOOKEEPER_SESSION_MILLIS),
                f"{prefix}.store.class": "org.apache.hadoop.yarn.server.resourcemanager.recovery.ZKRMStateStore",
            }
        return site

    @staticmethod
    def _write_conf(folder: Path, site: Mapping[str, str], state_folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        conf.write_site(folder / "core-site.xml", conf.core_site(state_folder))
        conf.write_site(folder / "yarn-site.xml", site)
        conf.write_site(folder / "capacity-scheduler.xml", conf.capacity_scheduler())
        (folder / "log4j.properties").write_text(conf.LOG4J)

    async def _ha_call(self, rm_id: str, method: str, request: bytes) -> bytes:
        options = connection.ConnectionOptions(user="yarn", connect_timeout_seconds=2, max_response_bytes=1_000_000)
        link = await connection.open_connection(
            self.admin_address(rm_id), protocol=ha_service.PROTOCOL, options=options
        )
        try:
            return await link.call(method, request, timeout_seconds=30)
        finally:
            await link.aclose()


def _identity(group: ProcessGroup, number: int) -> NodeIdentity:
    ports = NodePorts(**{name: group.ports.take() for name in NodePorts.__dataclass_fields__})
    return NodeIdentity(number=number, ports=ports, domain="lab.internal")
