# SPDX-License-Identifier: Apache-2.0
"""Build etcd, kube-apiserver and kube-scheduler from the module beside this file, once per module and flags.

A first build takes about six minutes on two cores and fills Go's own cache; after a change of flags only linking is
left. The binaries (220 MB) go to the lab's cache.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab.errors import LabError
from lab.processes import cache
from lab.processes.progress import Progress

_MODULE: Final = Path(__file__).parent
_PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Name the programs of the control plane."""

    etcd: Path
    api_server: Path
    scheduler: Path


def kubernetes_version() -> str:
    """Read the version of Kubernetes from go.mod, for example `v1.37.2`."""
    match = re.search(r"^\s*k8s\.io/kubernetes (v\S+)", (_MODULE / "go.mod").read_text(), re.MULTILINE)
    if match is None:
        raise LabError(f"{_MODULE / 'go.mod'} does not require k8s.io/kubernetes")
    return match.group(1)


def ensure_binaries(progress: Progress) -> Binaries:
    """Return the built programs, building what is missing.

    Raises:
        LabError: Go is missing or a build failed.
    """
    flags = _linker_flags(kubernetes_version())
    key = cache.digest_of(_MODULE / "go.mod", _MODULE / "go.sum", flags, *_PACKAGES.values())

    def build(folder: Path) -> None:
        for name, package in _PACKAGES.items():
            with progress.step(f"building {name} (minutes the first time)"):
                argv = [
                    "go",
                    "build",
                    "-trimpath",
                    "-mod=readonly",
                    "-ldflags",
                    flags,
                    "-o",
                    str(folder / name),
                    package,
                ]
                cache.run_tool(argv, working_directory=_MODULE, what=f"building {name}")

    folder = cache.build_once("kubernetes", key, build)
    return Binaries(etcd=folder / "etcd", api_server=folder / "kube-apiserver", scheduler=folder / "kube-scheduler")


def _linker_flags(version: str) -> str:
    major, minor = version.removeprefix("v").split(".")[:2]
    package = "k8s.io/component-base/version"
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X {package}.{name}={value}" for name, value in values.items())])
