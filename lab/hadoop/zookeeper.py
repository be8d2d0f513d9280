# SPDX-License-Identifier: Apache-2.0
"""Run the ZooKeeper server that is among Hadoop's jars."""

from __future__ import annotations

import socket
from typing import Final

from lab.hadoop import conf
from lab.hadoop.java import Java
from lab.processes import probes
from lab.processes.group import ProcessGroup
from lab.processes.process import Command

_MAIN: Final = "org.apache.zookeeper.server.ZooKeeperServerMain"
_READY_TIMEOUT_SECONDS: Final = 90.0


def start_zookeeper(group: ProcessGroup, programs: Java) -> int:
    """Start it and wait until it listens.

    Returns:
        Its port on loopback.

    Raises:
        LabError: it is not ready in time.
    """
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
            argv=[*programs.command(_MAIN, folder, heap_mib=128), str(configuration)],
            log_path=group.state.log_path("zookeeper"),
        )
    )
    process.start()

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((conf.HOST, port)) == 0

    probes.wait_until(listens, what="ZooKeeper listens", timeout_seconds=_READY_TIMEOUT_SECONDS, processes=[process])
    return port
