# SPDX-License-Identifier: Apache-2.0
"""Run a ResourceManager that asks everybody for Kerberos tickets, with the lab's own KDC.

Its web services are open, as they are by default, or ask for SPNEGO too and speak TLS only.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import requests

from lab.hadoop import conf, java
from lab.hadoop.conf import ManagerPorts
from lab.hadoop.jars import ensure_jars
from lab.hadoop.java import Java
from lab.hadoop.kdc import KDC
from lab.hadoop.options import YarnOptions
from lab.hadoop.tls import KeyStore
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.grouped import GroupedServers
from lab.processes.process import Command, ServerProcess
from lab.processes.progress import Progress

READY_TIMEOUT_SECONDS: Final = 90.0
ADMINISTRATOR: Final = "yarn"
SERVER: Final = "rm/localhost"
NODE_MANAGER: Final = "nm/localhost"
WEB: Final = "HTTP/localhost"
_ACTIVE: Final = "Transitioned to active state"


class SecureYarn(GroupedServers):
    """Be a KDC and one ResourceManager; a context manager.

    Attributes:
        keytabs: principal without realm to keytab: `yarn` (administrator), `alice`, `nm/localhost`, `rm/localhost`,
            `HTTP/localhost`.
        conf_dir: Hadoop's configuration folder for clients.
        key_store: of the web services, where they are guarded.
    """

    def __init__(
        self,
        *,
        version: str = "3.5.0",
        protection: str = "authentication,integrity,privacy",
        guarded_web: bool = False,
    ) -> None:
        """Choose.

        Args:
            version: Hadoop's.
            protection: the server's hadoop.rpc.protection.
            guarded_web: the web services want Kerberos and speak TLS only.
        """
        self._version = version
        self._protection = protection
        self._guarded_web = guarded_web
        self.key_store: KeyStore | None = None
        self.keytabs: dict[str, Path] = {}

    def _start(self, group: ProcessGroup) -> None:
        jars = ensure_jars(self._version, Progress(quiet=True))
        self.kdc = KDC(group)
        self.kdc.start()
        for name in (ADMINISTRATOR, "alice", SERVER, NODE_MANAGER, WEB):
            self.keytabs[name] = self.kdc.add_principal(name)
        folder = group.state.folder("yarn")
        self.conf_dir = folder / "conf"
        if self._guarded_web:
            self.key_store = KeyStore.make(folder)
        self.ports = ManagerPorts(**{name: group.ports.take() for name in ManagerPorts.__dataclass_fields__})
        options = YarnOptions(
            administrators=ADMINISTRATOR,
            expiry_millis=600_000,
            recover_applications=False,
            properties=self._secure_site(),
        )
        conf.write_manager_conf(self.conf_dir, self.ports, options, folder)
        if self.key_store is not None:
            self.key_store.write_server_conf(self.conf_dir)
        conf.write_site(self.conf_dir / "core-site.xml", {**conf.core_site(folder), **self._secure_core()})
        hosts = folder / "hosts"
        hosts.write_text(conf.hosts_text({}))
        programs = Java(jars=jars, hosts_file=hosts, temporary_folder=group.state.folder("tmp"))
        self.resource_manager: ServerProcess = group.add(
            Command(
                name="resourcemanager",
                argv=programs.command(
                    java.MAIN_RESOURCE_MANAGER, self.conf_dir, heap_mib=512, options=self.kdc.java_options
                ),
                log_path=group.state.log_path("resourcemanager"),
                environment={"HADOOP_HOME": str(folder), "HADOOP_YARN_HOME": str(folder)},
            )
        )
        self.resource_manager.start()
        probes.wait_until(
            self._is_ready,
            what="the ResourceManager is ready",
            timeout_seconds=READY_TIMEOUT_SECONDS,
            processes=[self.resource_manager, self.kdc.process],
        )

    def properties(self) -> Mapping[str, str]:
        """Give what a client's core-site.xml and yarn-site.xml say together about security."""
        return {**self._secure_core(), **self._secure_site()}

    def _secure_core(self) -> dict[str, str]:
        return {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "false",
            "hadoop.rpc.protection": self._protection,
            "hadoop.proxyuser.yarn.hosts": "*",
            "hadoop.proxyuser.yarn.groups": "*",
            "hadoop.proxyuser.yarn.users": "*",
            "hadoop.security.token.service.use_ip": "false",
            **(self._web_core() if self._guarded_web else {}),
        }

    def _web_core(self) -> dict[str, str]:
        prefix = "hadoop.http.authentication"
        return {
            "hadoop.http.filter.initializers": "org.apache.hadoop.security.AuthenticationFilterInitializer",
            f"{prefix}.type": "kerberos",
            f"{prefix}.kerberos.principal": f"{WEB}@{KDC.realm}",
            f"{prefix}.kerberos.keytab": str(self.keytabs.get(WEB, "")),
        }

    def _secure_site(self) -> dict[str, str]:
        realm = KDC.realm
        return {
            "yarn.resourcemanager.principal": f"{SERVER}@{realm}",
            "yarn.resourcemanager.keytab": str(self.keytabs.get(SERVER, "")),
            "yarn.nodemanager.principal": f"{NODE_MANAGER}@{realm}",
            **(self._web_site() if self._guarded_web else {}),
        }

    def _web_site(self) -> dict[str, str]:
        return {
            "yarn.http.policy": "HTTPS_ONLY",
            "yarn.resourcemanager.webapp.https.address": f"{conf.HOST}:{self.ports.web}",
            "yarn.resourcemanager.webapp.spnego-principal": f"{WEB}@{KDC.realm}",
            "yarn.resourcemanager.webapp.spnego-keytab-file": str(self.keytabs.get(WEB, "")),
        }

    def _is_ready(self) -> bool:
        if self._guarded_web:
            with socket.socket() as probe:
                is_listening = probe.connect_ex((conf.HOST, self.ports.web)) == 0
            return is_listening and _ACTIVE in self.resource_manager.log_path.read_text(errors="replace")
        with requests.Session() as session:
            session.trust_env = False
            answer = session.get(f"http://{conf.HOST}:{self.ports.web}/ws/v1/cluster/info", timeout=5)
        if answer.status_code != requests.codes.ok:
            raise probes.NotReadyError(f"answered {answer.status_code}")
        decoded: dict[str, Any] = answer.json()
        # Without high availability it becomes active too, some time after the web server answers.
        return bool(decoded["clusterInfo"]["haState"] == "ACTIVE")
