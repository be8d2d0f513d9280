# SPDX-License-Identifier: Apache-2.0
"""Run a YARN cluster: one ResourceManager and NodeManagers, each on an address of its own."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from typing import Any, Final

import requests

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

READY_TIMEOUT_SECONDS: Final = 90.0
_CALL_TIMEOUT_SECONDS: Final = 10.0
_CARRIED_OUT: Final = re.compile(r"IP=\S+\s+OPERATION=updateNodeResource\s.*RESULT=SUCCESS")
_REFUSED: Final = re.compile(r"ResourceManagerAdministrationProtocolPB\.updateNodeResource from ")


class Yarn:
    """Control the cluster and read the ResourceManager's own view over REST.

    The folder `conf_dir` is what the controller gets. `operator_user` is the user that may change capacities.
    """

    operator_user: Final = "yarn"

    def __init__(
        self, group: ProcessGroup, *, version: str, node_managers: int, options: YarnOptions, progress: Progress
    ) -> None:
        self.version = version
        self.options = options
        self.startup_seconds: dict[str, float] = {}
        self._group = group
        self.folder = group.state.folder("yarn")
        self.conf_dir = self.folder / "conf"
        self.ports = ManagerPorts(**{name: group.ports.take() for name in ManagerPorts.__dataclass_fields__})
        identities = [_identity(group, number + 1, options) for number in range(node_managers)]
        hosts_file = self.folder / "hosts"
        hosts_file.write_text(
            conf.hosts_text({each.host_name: each.address for each in identities if each.domain is not None})
        )
        self.java = Java(
            jars=ensure_jars(version, progress), hosts_file=hosts_file, temporary_folder=group.state.folder("tmp")
        )
        conf.write_manager_conf(self.conf_dir, self.ports, options, self.folder)
        site = conf.yarn_site(self.ports, options, self.folder)
        self.node_managers = [
            NodeManager(
                group,
                identity,
                java_programs=self.java,
                manager_site={**site, **options.properties},
                options=options,
            )
            for identity in identities
        ]
        self.resource_manager: ServerProcess = group.add(
            Command(
                name="resourcemanager",
                argv=self.java.command(
                    java.MAIN_RESOURCE_MANAGER, self.conf_dir, heap_mib=options.resource_manager_heap_mib
                ),
                log_path=group.state.log_path("resourcemanager"),
                environment={"HADOOP_HOME": str(self.folder), "HADOOP_YARN_HOME": str(self.folder)},
            )
        )

    @property
    def rest_url(self) -> str:
        """Return the base of the RM's web services, for example `http://127.0.0.1:8088`."""
        return f"http://{conf.HOST}:{self.ports.web}"

    @property
    def client_address(self) -> str:
        """Return host:port of the client protocol."""
        return f"{conf.HOST}:{self.ports.client}"

    @property
    def admin_address(self) -> str:
        """Return host:port of the administration protocol."""
        return f"{conf.HOST}:{self.ports.admin}"

    @property
    def tracker_address(self) -> str:
        """Return host:port of the resource tracker protocol."""
        return f"{conf.HOST}:{self.ports.tracker}"

    def start(self) -> None:
        """Start everything at once and wait until every NodeManager is RUNNING.

        Raises:
            LabError: a server ended or is not ready in time.
        """
        began = time.monotonic()
        self.resource_manager.start()
        for node_manager in self._own():
            node_manager.start()
        self.wait_for_resource_manager()
        self.startup_seconds["resourcemanager"] = round(time.monotonic() - began, 2)
        self.wait_for_nodes()
        self.startup_seconds["nodemanagers"] = round(time.monotonic() - began, 2)

    def revive(self) -> None:
        """Start what does not run, let frozen processes go on, and wait until all NodeManagers are RUNNING."""
        self.resource_manager.resume()
        if not self.resource_manager.is_running:
            self.start_rm()
        for node_manager in self._own():
            node_manager.resume()
            if not node_manager.is_running:
                node_manager.start()
        self.wait_for_nodes()

    def clear(self) -> None:
        """End all applications; where something is still held then, start the RM and the NodeManagers anew.

        So what one test leaves behind, a container that the RM goes on counting, say, spoils no other test.

        Raises:
            LabError: something is held even so.
        """
        try:
            self.kill_applications()
        except LabError as error:
            print(f"YARN is started anew: {str(error).splitlines()[0]}", file=sys.stderr)
            for node_manager in self._own():
                node_manager.stop()
            self.stop_rm()
            self.start()
            self.kill_applications()

    def kill_applications(self) -> None:
        """Kill every application that has not finished and wait until no node is used.

        Raises:
            requests.HTTPError: the RM refused.
            LabError: something is still held after a minute.
        """
        found = self._get("/ws/v1/cluster/apps?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING")["apps"]
        for application in found["app"] if found else []:
            answer = requests.put(
                f"{self.rest_url}/ws/v1/cluster/apps/{application['id']}/state?user.name={self.operator_user}",
                json={"state": "KILLED"},
                timeout=_CALL_TIMEOUT_SECONDS,
            )
            if answer.status_code >= 400:
                raise requests.HTTPError(f"{answer.url} answered {answer.status_code}: {answer.text[:500]}")
        probes.wait_until(
            lambda: all(node["usedMemoryMB"] == 0 for node in self.nodes()),
            what="no node is used",
            timeout_seconds=60.0,
            processes=[self.resource_manager],
        )

    def reset_capacities(self) -> None:
        """Give every NodeManager the capacity that it registered with."""
        floor = (self.options.floor_memory_mib, self.options.floor_vcores)
        for node_manager in self.node_managers:
            if self.capacity(node_manager.node_id) != floor:
                self.set_capacity(node_manager.node_id, *floor)

    def start_rm(self) -> None:
        """Start the ResourceManager and wait until it answers."""
        self.resource_manager.start()
        self.wait_for_resource_manager()

    def stop_rm(self, *, kill: bool = False) -> None:
        """End the ResourceManager with SIGTERM, or with SIGKILL."""
        if kill:
            self.resource_manager.kill()
        else:
            self.resource_manager.stop()

    def wait_for_resource_manager(self) -> None:
        """Wait until the RM is active and answers REST calls."""
        probes.wait_until(
            self._is_active,
            what="the ResourceManager is ready",
            timeout_seconds=READY_TIMEOUT_SECONDS,
            processes=[self.resource_manager],
        )

    def wait_for_nodes(self, node_managers: Iterable[NodeManager] | None = None) -> None:
        """Wait until the given NodeManagers (all by default) are RUNNING at the RM."""
        expected = list(self._own() if node_managers is None else node_managers)

        def are_running() -> bool:
            states = {node["id"]: node["state"] for node in self.nodes()}
            missing = {each.node_id: states.get(each.node_id) for each in expected}
            waiting = {node_id: state for node_id, state in missing.items() if state != "RUNNING"}
            if waiting:
                raise probes.NotReadyError(f"waiting for {waiting}, the RM knows {states}")
            return True

        probes.wait_until(
            are_running,
            what="all NodeManagers are RUNNING",
            timeout_seconds=READY_TIMEOUT_SECONDS,
            processes=[self.resource_manager, *(each.process for each in expected)],
        )

    def _own(self) -> list[NodeManager]:
        """List the NodeManagers that the lab starts itself."""
        return [each for each in self.node_managers if each.identity.number not in self.options.unstarted]

    def nodes(self) -> list[dict[str, Any]]:
        """Read the RM's node list (REST): id, state, nodeHostName, usedMemoryMB, availMemoryMB ..."""
        found = self._get("/ws/v1/cluster/nodes")["nodes"]
        return list(found["node"]) if found else []

    def node(self, node_id: str) -> dict[str, Any]:
        """Read one node of the RM's list.

        Raises:
            LabError: the RM does not list it.
        """
        for node in self.nodes():
            if node["id"] == node_id:
                return node
        raise LabError(f"the ResourceManager lists no node {node_id}")

    def capacity(self, node_id: str) -> tuple[int, int]:
        """Return a node's capacity as the RM has it: memory in MiB, vcores."""
        resource = self.node(node_id)["totalResource"]
        return int(resource["memory"]), int(resource["vCores"])

    def used(self, node_id: str) -> tuple[int, int]:
        """Return what the scheduler has handed out on a node: memory in MiB, vcores."""
        node = self.node(node_id)
        return int(node["usedMemoryMB"]), int(node["usedVirtualCores"])

    def set_capacity(
        self, node_id: str, memory_mib: int, vcores: int, *, overcommit_timeout_millis: int = 2_147_483_647
    ) -> None:
        """Change a node's capacity over REST as an administrator would by hand; waits until the RM shows it.

        Raises:
            requests.HTTPError: the RM refused.
            LabError: the RM does not show it in time.
        """
        answer = requests.post(
            f"{self.rest_url}/ws/v1/cluster/nodes/{node_id}/resource?user.name={self.operator_user}",
            json={
                "resource": {"memory": memory_mib, "vCores": vcores},
                "overCommitTimeout": overcommit_timeout_millis,
            },
            timeout=_CALL_TIMEOUT_SECONDS,
        )
        if answer.status_code >= 400:
            raise requests.HTTPError(f"{answer.url} answered {answer.status_code}: {answer.text[:500]}")
        probes.wait_until(
            lambda: self.capacity(node_id) == (memory_mib, vcores),
            what=f"{node_id} has {memory_mib} MiB and {vcores} vcores",
            timeout_seconds=10.0,
        )

    def count_update_calls(self, *, succeeded_only: bool = False) -> int:
        """Count the updateNodeResource calls over RPC since the lab started, also over restarts of the RM.

        The RM's log tells: an audit line with the caller's address for each call that was carried out (a change over
        REST has no address and does not count), a line of the RPC server for each that was refused.

        Args:
            succeeded_only: leave refused calls out.
        """
        patterns = [_CARRIED_OUT] if succeeded_only else [_CARRIED_OUT, _REFUSED]
        text = self.resource_manager.log_path.read_text(errors="replace")
        return sum(len(pattern.findall(text)) for pattern in patterns)

    def _is_active(self) -> bool:
        """Tell whether it may be administrated: its web port and even the NodeManagers' port answer before that."""
        found = self._get("/ws/v1/cluster/info")["clusterInfo"]
        return (found["state"], found["haState"]) == ("STARTED", "ACTIVE")

    def _get(self, path: str) -> dict[str, Any]:
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(
                self.rest_url + path, headers={"Accept": "application/json"}, timeout=_CALL_TIMEOUT_SECONDS
            )
        if answer.status_code != requests.codes.ok:
            raise probes.NotReadyError(f"{path} answered {answer.status_code}: {answer.text[:200]}")
        decoded: dict[str, Any] = answer.json()
        return decoded


def _identity(group: ProcessGroup, number: int, options: YarnOptions) -> NodeIdentity:
    ports = NodePorts(**{name: group.ports.take() for name in NodePorts.__dataclass_fields__})
    return NodeIdentity(number=number, ports=ports, domain=None if number in options.nameless else options.domain)
