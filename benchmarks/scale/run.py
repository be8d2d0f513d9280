# SPDX-License-Identifier: Apache-2.0
"""Run all phases and make one result of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks import machine
from benchmarks.results import Result
from benchmarks.scale.bare import measure_servers
from benchmarks.scale.product import Measurement
from benchmarks.scale.stage import Size, stage
from lab.processes.progress import Progress

NAME: Final = "scale"
AIMS: Final = {
    "first_convergence_seconds": 5.0,
    "sent_p99_seconds": 0.5,
    "propagation_p99_seconds": 2.5,
    "resident_mib": 200.0,
    "steady_writes": 0.0,
}
NOTES: Final = (
    "etcd, API server, ResourceManager, fleet, driver, observer and controller share this machine's cores",
    "kube-scheduler is stopped; the pods are bound already",
    "sent and scheduler_applied are times of the ResourceManager's own log, claims of the API server's audit log; "
    "propagation is seen by reading the node list from outside every 0.25 s",
    "mass change: changes come as fast as the API server takes them; burst: the controller is frozen meanwhile and "
    "sees all at once, times count from its waking",
    "bare_*: the same work without the product, so the servers' own time",
)


def measure(size: Size, progress: Progress) -> Result:
    """Measure at a size.

    Raises:
        LabError: a server failed, or the product did not reach the state that it must.
    """
    started_on = machine.describe_machine()
    with stage(size, progress) as (put_up, figures):
        figures |= {"nodes": size.nodes, "pods": size.pods}
        figures |= measure_servers(put_up)
        measurement = Measurement(put_up)
        phases: tuple[tuple[str, Callable[[], dict[str, float]]], ...] = (
            ("first convergence", measurement.first_convergence),
            ("single changes", measurement.single_changes),
            ("mass change", measurement.mass_change),
            ("burst", measurement.burst),
            ("rest", measurement.steady),
        )
        for name, phase in phases:
            with progress.step(f"measuring the controller: {name}"):
                figures |= phase()
        measurement.controller.terminate()
        return Result.of_now(
            NAME, figures, started_on=started_on, hadoop_version=put_up.lab.hadoop_version, notes=NOTES
        )
