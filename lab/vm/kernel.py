# SPDX-License-Identifier: Apache-2.0
"""Fetch Debian's kernel for virtual machines and unpack it, without installing it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from lab.errors import LabError
from lab.processes import cache
from lab.processes.progress import Progress

PACKAGE: Final = "linux-image-cloud-amd64"
"""Always depends on the newest kernel of the release; Debian 12 has Linux 6.1, with cgroup.kill and PSI."""


def ensure_kernel(progress: Progress) -> Path:
    """Return the kernel's image.

    Raises:
        LabError: apt knows no such package, or it cannot be fetched.
    """

    def build(folder: Path) -> None:
        with progress.step("fetching a kernel for the virtual machine"):
            cache.run_tool(["apt-get", "download", _newest()], working_directory=folder, what="fetching a kernel")
            (package,) = folder.glob("*.deb")
            unpacked = folder / "unpacked"
            cache.run_tool(["dpkg-deb", "-x", str(package), str(unpacked)], working_directory=folder, what="unpacking")
            next((unpacked / "boot").glob("vmlinuz-*")).rename(folder / "vmlinuz")
            cache.run_tool(["rm", "-r", str(unpacked), str(package)], working_directory=folder, what="tidying up")

    return cache.build_once("cloud-kernel", cache.digest_of(Path(__file__)), build) / "vmlinuz"


def _newest() -> str:
    listed = subprocess.run(
        ["apt-cache", "depends", "--important", PACKAGE], capture_output=True, text=True, check=False
    ).stdout
    names = [line.split()[-1] for line in listed.splitlines() if "Depends:" in line]
    if not names:
        raise LabError(f"apt does not know {PACKAGE}: run apt-get update on a Debian 12 machine")
    return names[0]
