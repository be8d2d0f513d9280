# SPDX-License-Identifier: Apache-2.0
"""Run one NodeManager on a loopback address and host name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.hadoop import conf, java
from lab.hadoop.java import Java
from lab.hadoop.options import YarnOptions
from lab.processes.group import ProcessGroup
from lab.processes.process import Command, ServerProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentity:
    """Name a NodeManager in every way by which it can be matched to a pod or a node."""

    number: int
    ports: conf.NodePorts
    domain: str | None

    @property
    def short_name(self) -> str:
        """Return the first label of the host name."""
        return f"nm-{self.number}"

    @property
    def host_name(self) -> str:
        """Return the full host name; the address where there is no domain."""
        return self.address if self.domain is None else f"{self.short_name}.{self.domain}"

    @property
    def address(self) -> str:
        """Return the IPv4 address."""
        return f"127.0.1.{self.number}"

    @property
    def node_id(self) -> str:
        """Return the id by which the RM knows the NodeManager, host:port."""
        return f"{self.host_name}:{self.ports.container_manager}"

    @property
    def http_address(self) -> str:
        """Return the address of the web interface as the RM reports it, host:port."""
        return f"{self.host_name}:{self.ports.web}"


class NodeManager:
    """Start, stop, kill and freeze one NodeManager; ports and folders stay over restarts."""

    def __init__(
        self,
        group: ProcessGroup,
        identity: NodeIdentity,
        *,
        java_programs: Java,
        manager_site: Mapping[str, str],
        options: YarnOptions,
    ) -> None:
        self.identity = identity
        self.folder = group.state.folder("yarn", identity.short_name)
        conf_folder = self.folder / "conf"
        site = conf.node_site(host_name=identity.host_name, ports=identity.ports, options=options, folder=self.folder)
        conf.write_node_conf(conf_folder, manager_site, {**site, **options.properties}, self.folder)
        self.process: ServerProcess = group.add(
            Command(
                name=identity.short_name,
                argv=java_programs.command(java.MAIN_NODE_MANAGER, conf_folder, heap_mib=options.node_manager_heap_mib),
                log_path=group.state.log_path(identity.short_name),
                environment=_environment(self.folder),
            )
        )

    @property
    def node_id(self) -> str:
        """Return the node id, host:port."""
        return self.identity.node_id

    @property
    def host_name(self) -> str:
        """Return the full host name."""
        return self.identity.host_name

    @property
    def address(self) -> str:
        """Return the IPv4 address."""
        return self.identity.address

    @property
    def is_running(self) -> bool:
        """Tell whether the process lives."""
        return self.process.is_running

    def start(self) -> None:
        """Start the process; `Yarn.wait_for_nodes` waits for its registration."""
        self.process.start()

    def stop(self) -> None:
        """End it with SIGTERM: its containers are stopped too."""
        self.process.stop()

    def kill(self) -> None:
        """End it with SIGKILL: container processes go on until the lab ends or the same NodeManager recovers them."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze it: heartbeats stop, connections stay open."""
        self.process.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.process.resume()


def _environment(folder: Path) -> dict[str, str]:
    return {"HADOOP_HOME": str(folder), "HADOOP_YARN_HOME": str(folder), "HADOOP_CONF_DIR": str(folder / "conf")}
