# SPDX-License-Identifier: Apache-2.0
"""Put up the servers and everything that plays around the product."""

from __future__ import annotations

import compileall
import contextlib
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.moments import AuditReader, UpdateReader
from benchmarks.workers.process import Worker
from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from lab.kubernetes.credentials import User
from lab.processes.progress import Progress

CONTROLLER_USER: Final = "benchmark-controller"
_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_YARN: Final = YarnOptions(heartbeat_millis=1000, expiry_millis=120_000, resource_manager_heap_mib=1536)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Say how large the cluster is and how long it is watched at rest.

    Attributes:
        nodes: Kubernetes nodes, each with a NodeManager.
        pods: all pods, those of the NodeManagers included.
        steady_seconds: length of the time at rest.
        single_changes: how many single nodes are changed, one after another.
    """

    nodes: int = 5_000
    pods: int = 50_000
    steady_seconds: float = 60.0
    single_changes: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Hold what runs."""

    size: Size
    lab: Lab
    fleet: Worker
    driver: Worker
    observer: Worker
    audit: AuditReader
    updates: UpdateReader
    user: User
    progress: Progress


@contextlib.contextmanager
def stage(size: Size, progress: Progress) -> Iterator[tuple[Stage, dict[str, float]]]:
    """Start servers, fleet and helpers, and make all objects.

    kube-scheduler is stopped: every pod is bound already, and its share of two cores says nothing about the product.

    Returns:
        The stage, and what making it measured.
    """
    _compile(progress)
    user = User(name=CONTROLLER_USER, groups=["system:masters"])
    with (
        Lab(node_managers=0, yarn_options=_YARN, users=[user], progress=progress) as lab,
        contextlib.ExitStack() as workers,
    ):
        lab.kubernetes.scheduler.stop()
        options = lab.yarn.options
        kubeconfig = str(lab.kubernetes.kubeconfig)
        driver = workers.enter_context(Worker("driver", "--kubeconfig", kubeconfig))
        with progress.step(f"creating {size.nodes} nodes and {size.pods} pods"):
            created = driver.ask("create", nodes=size.nodes, pods=size.pods)
        arguments = ["--tracker", lab.yarn.tracker_address, "--nodes", str(size.nodes)]
        arguments += ["--memory-mib", str(options.floor_memory_mib), "--vcores", str(options.floor_vcores)]
        fleet = workers.enter_context(Worker("fleet", *arguments))
        observer = workers.enter_context(
            Worker(
                "observer",
                *("--kubeconfig", kubeconfig),
                *("--hadoop-conf-dir", str(lab.yarn.conf_dir)),
                *("--user", lab.yarn.operator_user),
            )
        )
        put_up = Stage(
            size=size,
            lab=lab,
            fleet=fleet,
            driver=driver,
            observer=observer,
            audit=AuditReader(lab.state_dir / "kubernetes" / "audit.log"),
            updates=UpdateReader(lab.yarn.resource_manager.log_path),
            user=user,
            progress=progress,
        )
        described: dict[str, Any] = fleet.ask("describe")
        yield (
            put_up,
            {
                "create_objects_seconds": created["seconds"],
                "create_requests_per_second": created["requests"] / created["seconds"],
                "fleet_register_seconds": described["registered_seconds"],
            },
        )


def _compile(progress: Progress) -> None:
    """Compile what the controller imports, as an installation does: it would otherwise be part of its start."""
    with progress.step("compiling Python modules"):
        for folder in (sysconfig.get_path("purelib"), _REPOSITORY / "yarn_copilot", _REPOSITORY / "batch_resources"):
            compileall.compile_dir(str(folder), quiet=2, workers=2)
