# SPDX-License-Identifier: Apache-2.0
"""Run two ResourceManagers as a pair, with NodeManagers that follow the active one.

With ZooKeeper (its server is among Hadoop's jars) the embedded electors choose, state is kept in ZooKeeper and the
deposed one is fenced. Without, `make_active` and `make_standby` do what an administrator does, and state is in files.
"""

from __future__ import annotations

import asyncio
import functools
import re
import socket
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from lab.errors import LabError
from lab.hadoop import conf, java
from lab.hadoop.conf import ManagerPorts, NodePorts
from lab.hadoop.jars import ensure_jars
from lab.hadoop.java import Java
from lab.hadoop.node_manager import NodeIdentity, NodeManager
from lab.hadoop.options import YarnOptions
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess
from lab.processes.progress import Progress
from lab.processes.state import StateFolder
from yarn_copilot.hadoop import connection, errors
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.model import HAServiceState
from yarn_copilot.hadoop.protocols import ha_service

IDS: Final = ("rm1", "rm2")
READY_TIMEOUT_SECONDS: Final = 90.0
ZOOKEEPER_SESSION_MILLIS: Final = 2_000
_MAIN_ZOOKEEPER: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_BY_USER: Final = b"\x0a\x02\x08\x00"
"""StateChangeRequestInfo with the source REQUEST_BY_USER."""
_STAMP: Final = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) ")
_ACTIVE: Final = "Transitioned to active state"
_ACCEPTED: Final = re.compile(r"IP=\S+\s+OPERATION=updateNodeResource\s.*RESULT=SUCCESS")

_REACHED: Final = re.compile(
    r"OPERATION=updateNodeResource\s.*RESULT=SUCCESS|ResourceManagerAdministrationProtocolPB\.updateNodeResource from "
)


class Pair:
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
        self._group: ProcessGroup | None = None
        self.resource_managers: dict[str, ServerProcess] = {}
        self.node_managers: list[NodeManager] = []

    def __enter__(self) -> Self:
        jars = ensure_jars(self._version, Progress(quiet=True))
        self._group = group = ProcessGroup(StateFolder())
        try:
            self._start(group, jars)
        except BaseException:
            group.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._group is not None:
            self._group.close()

    def admin_address(self, rm_id: str) -> Address:
        """Give the administration port of one of them."""
        return Address(conf.HOST, self._ports[rm_id].admin)

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

    def log_of(self, rm_id: str) -> str:
        """Read the log of one of them."""
        return self.resource_managers[rm_id].log_path.read_text(errors="replace")

    def accepted_updates(self) -> dict[str, int]:
        """Count the updateNodeResource calls that each has carried out, by its audit log."""
        return {rm_id: len(_ACCEPTED.findall(self.log_of(rm_id))) for rm_id in IDS}

    def seconds_to_first_call(self, rm_id: str) -> float:
        """Tell how long after its last change to active the first update reached it, refused or not."""
        return self._seconds_to_first(rm_id, _REACHED)

    def seconds_to_first_update(self, rm_id: str) -> float:
        """Tell how long after its last change to active it carried out the first update, by its own clock."""
        return self._seconds_to_first(rm_id, _ACCEPTED)

    def _seconds_to_first(self, rm_id: str, event: re.Pattern[str]) -> float:
        became: datetime | None = None
        first: datetime | None = None
        for line in self.log_of(rm_id).splitlines():
            stamp = _STAMP.match(line)
            if stamp is None:
                continue
            if _ACTIVE in line:
                became, first = _time(stamp[1]), None
            elif became is not None and first is None and event.search(line):
                first = _time(stamp[1])
        if became is None or first is None:
            raise LabError(f"{rm_id} never became active, or carried out no update after it")
        return (first - became).total_seconds()

    def _has_registered(self, node_id: str) -> bool:
        pattern = f"{node_id} Node Transitioned from NEW to RUNNING"
        return any(pattern in self.log_of(rm_id) for rm_id in IDS)

    def _answers(self, rm_id: str) -> bool:
        return self.state_of(rm_id) is not None

    def _start(self, group: ProcessGroup, jars: Path) -> None:
        folder = group.state.folder("yarn")
        names = list(ManagerPorts.__dataclass_fields__)
        self._ports = {rm_id: ManagerPorts(**{name: group.ports.take() for name in names}) for rm_id in IDS}
        identities = [_identity(group, number + 1) for number in range(self._count)]
        hosts = folder / "hosts"
        hosts.write_text(conf.hosts_text({each.host_name: each.address for each in identities}))
        programs = Java(jars=jars, hosts_file=hosts, temporary_folder=group.state.folder("tmp"))
        zookeeper_port = self._start_zookeeper(group, programs) if self._with_zookeeper else None
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

    @staticmethod
    def _start_zookeeper(group: ProcessGroup, programs: Java) -> int:
        port = group.ports.take()
        folder = group.state.folder("zookeeper")
        (folder / "log4j.properties").write_text(conf.LOG4J)
        configuration = folder / "zoo.cfg"
        configuration.write_text(
            f"tickTime=200\ndataDir={folder / 'data'}\nclientPort={port}\nclientPortAddress={conf.HOST}\n"
            "admin.enableServer=false\nmaxClientCnxns=0\nminSessionTimeout=500\n"
        )
        process = group.add(
            Command(
                name="zookeeper",
                argv=[*programs.command(_MAIN_ZOOKEEPER, folder, heap_mib=128), str(configuration)],
                log_path=group.state.log_path("zookeeper"),
            )
        )
        process.start()

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex((conf.HOST, port)) == 0

        probes.wait_until(listens, what="ZooKeeper listens", timeout_seconds=READY_TIMEOUT_SECONDS, processes=[process])
        return port

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
            # A NodeManager whose ResourceManager was frozen would wait two minutes for it.
            "ipc.client.rpc-timeout.ms": "2000",
            "ipc.ping.interval": "1000",
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


def _time(stamp: str) -> datetime:
    return datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f")  # noqa: DTZ007  (only differences are used)
