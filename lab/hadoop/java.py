# SPDX-License-Identifier: Apache-2.0
"""Make the command lines of the lab's Java programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MAIN_RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
MAIN_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """Hold what all Java programs of one YARN cluster share."""

    jars: Path
    hosts_file: Path
    temporary_folder: Path

    def command(
        self, main: str, conf: Path, *, heap_mib: int, classes: Path | None = None, options: Sequence[str] = ()
    ) -> list[str]:
        """Return the argument list that runs `main` with a configuration folder.

        Serial collector and the quick compiler alone: on two cores the start matters, not the peak.
        """
        parts = [str(conf), *([str(classes)] if classes else []), f"{self.jars}/*"]
        return [
            "java",
            f"-Xmx{heap_mib}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Xshare:auto",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "-Djava.net.preferIPv4Stack=true",
            f"-Djava.io.tmpdir={self.temporary_folder}",
            f"-Djdk.net.hosts.file={self.hosts_file}",
            *options,
            "-cp",
            ":".join(parts),
            main,
        ]
