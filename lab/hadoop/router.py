# SPDX-License-Identifier: Apache-2.0
"""Run a Federation Router in front of one sub-cluster: ZooKeeper, a ResourceManager and the Router.

Its configuration names the Router's ports where a ResourceManager's would be, as clients of a federation have it.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

from lab.hadoop import conf
from lab.hadoop.jars import ROUTER_VERSION, ensure_jars, ensure_router
from lab.hadoop.java import Java
from lab.hadoop.options import YarnOptions
from lab.hadoop.yarn import Yarn
from lab.hadoop.zookeeper import start_zookeeper
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.grouped import GroupedServers
from lab.processes.process import Command, ServerProcess
from lab.processes.progress import Progress

SUB_CLUSTER: Final = "sub-1"
READY_TIMEOUT_SECONDS: Final = 90.0
_MAIN: Final = "org.apache.hadoop.yarn.server.router.Router"
_INTERCEPTORS: Final = "org.apache.hadoop.yarn.server.router"
_STORE: Final = "org.apache.hadoop.yarn.server.federation.store.impl.ZookeeperFederationStateStore"


class FederatedYarn(GroupedServers):
    """Be the federation; a context manager.

    Attributes:
        yarn: the sub-cluster, without NodeManagers.
        conf_dir: Hadoop's configuration folder for clients of the Router.
        router: its process.
    """

    yarn: Yarn
    conf_dir: Path
    router: ServerProcess

    def _start(self, group: ProcessGroup) -> None:
        progress = Progress(quiet=True)
        jars = ensure_jars(ROUTER_VERSION, progress)
        folder = group.state.folder("router")
        hosts = folder / "hosts"
        hosts.write_text(conf.hosts_text({}))
        programs = Java(jars=jars, hosts_file=hosts, temporary_folder=group.state.folder("router-tmp"))
        federation = {
            "yarn.federation.enabled": "true",
            "yarn.federation.state-store.class": _STORE,
            "hadoop.zk.address": f"{conf.HOST}:{start_zookeeper(group, programs)}",
            "yarn.resourcemanager.cluster-id": SUB_CLUSTER,
            # A Router that asked before the sub-cluster was there would believe for five minutes that there is none.
            "yarn.federation.cache-ttl.secs": "1",
            # It counts as running from its first sign of life on, by default after half a minute.
            "yarn.federation.state-store.heartbeat.initial-delay": "1",
        }
        self.yarn = Yarn(
            group,
            version=ROUTER_VERSION,
            node_managers=0,
            options=YarnOptions(properties=federation),
            progress=progress,
        )
        self.yarn.start()
        self._start_router(group, programs, federation, folder)

    def _start_router(self, group: ProcessGroup, programs: Java, federation: dict[str, str], folder: Path) -> None:
        client, admin, web = (group.ports.take() for _ in range(3))
        own = {
            **federation,
            "yarn.router.clientrm.address": f"{conf.HOST}:{client}",
            "yarn.router.rmadmin.address": f"{conf.HOST}:{admin}",
            "yarn.router.webapp.address": f"{conf.HOST}:{web}",
            "yarn.router.clientrm.interceptor-class.pipeline": f"{_INTERCEPTORS}.clientrm.FederationClientInterceptor",
            "yarn.router.rmadmin.interceptor-class.pipeline": f"{_INTERCEPTORS}.rmadmin.FederationRMAdminInterceptor",
            "yarn.router.webapp.interceptor-class.pipeline": f"{_INTERCEPTORS}.webapp.FederationInterceptorREST",
        }
        server = folder / "server"
        server.mkdir()
        conf.write_site(server / "core-site.xml", conf.core_site(folder))
        conf.write_site(server / "yarn-site.xml", own)
        (server / "log4j.properties").write_text(conf.LOG4J)
        self.conf_dir = folder / "conf"
        self.conf_dir.mkdir()
        conf.write_site(
            self.conf_dir / "yarn-site.xml",
            {
                "yarn.resourcemanager.address": f"{conf.HOST}:{client}",
                "yarn.resourcemanager.admin.address": f"{conf.HOST}:{admin}",
                "yarn.resourcemanager.webapp.address": f"{conf.HOST}:{web}",
            },
        )
        classes = ensure_router(Progress(quiet=True)) / "*"
        self.router = group.add(
            Command(
                name="router",
                argv=programs.command(_MAIN, server, heap_mib=256, classes=classes),
                log_path=group.state.log_path("router"),
                environment={"HADOOP_HOME": str(folder), "HADOOP_YARN_HOME": str(folder)},
            )
        )
        self.router.start()

        def listens() -> bool:
            for port in (client, admin, web):
                with socket.socket() as probe:
                    if probe.connect_ex((conf.HOST, port)) != 0:
                        return False
            return True

        probes.wait_until(
            listens, what="the Router listens", timeout_seconds=READY_TIMEOUT_SECONDS, processes=[self.router]
        )
