# SPDX-License-Identifier: Apache-2.0
"""Measure mode strict with thousands of nodes: first convergence, and a fall of every origin to its half.

The boundary is where nobody waits: YARN's part is half of what the pods leave, and it is claimed and published before
YARN gets it. koord-manager is the lab's stand-in, which keeps Koordinator's own rules and writes every Node itself, on
the same cores.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from benchmarks.samples import percentiles
from benchmarks.scale import objects
from benchmarks.scale.product import Measurement, after
from benchmarks.scale.stage import Size, Stage, stage
from benchmarks.workers.process import Worker
from lab.errors import LabError
from lab.processes.progress import Progress

_TIMEOUT_SECONDS: Final = 600.0
_MIB: Final = 1 << 20


def measure(size: Size, config: Mapping[str, Any], progress: Progress) -> dict[str, float]:
    """Measure on a fresh lab.

    Args:
        size: how many nodes and pods; the other fields are of no account.
        config: the controller's configuration, mode strict.
        progress: told what happens.

    Raises:
        LabError: a server failed, or the product did not reach the state that it must.
    """
    with (
        stage(size, progress) as (put_up, _),
        Worker("koordinator", "--kubeconfig", str(put_up.lab.kubernetes.kubeconfig)) as koordinator,
    ):
        measurement = StrictMeasurement(put_up, koordinator, config)
        with progress.step("publishing every origin"):
            measurement.publish_origins()
        with progress.step("measuring mode strict: first convergence"):
            figures = measurement.first_convergence()
        with progress.step("measuring mode strict: every origin falls"):
            figures |= measurement.shrink()
        measurement.controller.terminate()
        return {"nodes": size.nodes, "pods": size.pods, **figures}


class StrictMeasurement(Measurement):
    """Run the phases on one controller, in order."""

    def __init__(self, stage: Stage, koordinator: Worker, config: Mapping[str, Any]) -> None:
        """Prepare a controller."""
        super().__init__(stage, config)
        self._koordinator = koordinator

    def publish_origins(self) -> None:
        """Let koord-manager publish the first origins."""
        _complete(self._koordinator.ask("set_origins", origins=self._origins(), timeout_seconds=_TIMEOUT_SECONDS))

    def first_convergence(self) -> dict[str, float]:
        """Start the controller and wait until YARN has its part, and it is claimed and published, on every node."""
        self._koordinator.begin("expect", allocatable=self._allocatable(), timeout_seconds=_TIMEOUT_SECONDS)
        self._koordinator.read()
        figures = super().first_convergence()
        published_at = _complete(self._koordinator.read())["allocatable_at"]
        published = max(published_at.values()) - self._started_at
        return {
            **figures,
            "first_published_seconds": published,
            "first_convergence_seconds": max(figures["first_convergence_seconds"], published),
        }

    def shrink(self) -> dict[str, float]:
        """Halve every origin, and wait until YARN has given back, the claims have followed and Kubernetes may book."""
        stage = self._stage
        self._wait_quiet()
        stage.updates.updates()
        self._step += 1
        cpu_before = self._cpu_seconds()
        self._expect(self._targets(self._step))
        began_at = time.monotonic()
        self._koordinator.begin(
            "set_origins",
            origins=self._origins(),
            allocatable=self._allocatable(),
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        seen_at = self._seen()
        updates = stage.updates.updates_of(seen_at)
        published = _complete(self._koordinator.read())
        lowered_at, returned_at = published["origin_at"], published["allocatable_at"]
        began = [lowered_at[name] for name in objects.node_names(stage.size.nodes)]
        return {
            "shrink_seconds": max(seen_at.values()) - began_at,
            "shrink_origins_seconds": max(began) - began_at,
            "shrink_returned_seconds": max(returned_at.values()) - began_at,
            "shrink_cpu_seconds": self._cpu_seconds() - cpu_before,
            **percentiles("shrink_sent", after(began, updates.taken_at)),
            **percentiles("shrink_scheduler_applied", after(began, updates.applied_at)),
            **percentiles("shrink_propagation", after(began, seen_at)),
        }

    def _refresh(self) -> None:
        """Leave the NodeMetrics alone: they were written a moment ago, and others would be other origins."""

    def _origins(self) -> dict[str, tuple[int, int]]:
        return {objects.node_name(number): self._origin(number) for number in range(self._stage.size.nodes)}

    def _allocatable(self) -> dict[str, tuple[int, int]]:
        return {objects.node_name(number): self._left(number) for number in range(self._stage.size.nodes)}

    def _origin(self, number: int) -> tuple[int, int]:
        cpu_milli, memory_bytes = objects.origin_of(number, 0)
        return cpu_milli >> self._step, memory_bytes >> self._step

    def _left(self, number: int) -> tuple[int, int]:
        """Give what is left for kube-scheduler to book: origin less the claim of YARN's part."""
        (cpu_milli, memory_bytes), (memory_mib, vcores) = self._origin(number), self._target(number)
        return cpu_milli - 1000 * vcores, memory_bytes - _MIB * memory_mib

    def _target(self, number: int) -> tuple[int, int]:
        """Give YARN's part, MiB and vcores: half of what the pods leave, rounded down."""
        size = self._stage.size
        (cpu_milli, memory_bytes) = self._origin(number)
        (requested_milli, requested_bytes) = objects.requested_on(number, size.nodes, size.pods)
        return (memory_bytes - requested_bytes) // 2 // _MIB, (cpu_milli - requested_milli) // 2 // 1000

    def _targets(self, step: int) -> dict[str, list[int]]:
        assert step == self._step  # noqa: S101  # origins are those of the present step
        return {objects.node_id(number): list(self._target(number)) for number in range(self._stage.size.nodes)}


def _complete(answer: dict[str, Any]) -> dict[str, Any]:
    """Give an answer of the stand-in in which nothing is missing."""
    if answer["missing"]:
        raise LabError(f"{len(answer['missing'])} nodes were never published as expected, like {answer['missing'][:3]}")
    return answer
