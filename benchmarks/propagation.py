# SPDX-License-Identifier: Apache-2.0
"""Measure, with three real NodeManagers, how fast capacity follows origin and the claim follows YARN's use.

Times of capacity count from the API server's answer to the change of origin: until the ResourceManager logged the
update (sent), until its scheduler logged it (scheduler_applied), until a reading of the node list showed it
(propagation). Times of a claim count from the first reading in which the ResourceManager shows another use.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from batch_resources.annotations.third_party import read_third_party
from batch_resources.keys import ENTRY_NAME
from batch_resources.resources import BatchResources, YarnResources
from benchmarks import machine, results
from benchmarks.moments import UpdateReader
from benchmarks.results import Result
from benchmarks.samples import percentiles
from benchmarks.workers.process import Worker
from lab.cluster import Lab
from lab.controller import ControllerProcess
from lab.errors import LabError
from lab.hadoop.application import Application
from lab.kubernetes import bodies
from lab.kubernetes.bodies import NodeSpec
from lab.processes.progress import Progress

NAME: Final = "propagation"
AIMS: Final = {"propagation_p99_seconds": 1.0, "claim_p99_seconds": 2.0}
NOTES: Final = (
    "three real NodeManagers, heartbeats every 0.2 s, one change at a time; all processes share this machine's cores",
    "a claim rises with the next reading of the ResourceManager and falls after two with a heartbeat between",
)
_CONFIG: Final[Mapping[str, Any]] = {"capacity": {"mode": "shared", "growth_window_seconds": 0}}
_ORIGIN: Final = (60_646, 245_976_973_438)
_DEADLINE_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.37
"""Between two changes; no multiple of any interval of the product, so that every phase of its polls is met."""
_POLL_SECONDS: Final = 0.01
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bench:
    lab: Lab
    controller: ControllerProcess
    driver: Worker
    observer: Worker
    nodes: Mapping[str, str]
    """Node id by name of the Kubernetes node."""


def measure(changes: int, progress: Progress) -> Result:
    """Make so many changes of origin, and as many of YARN's use.

    Raises:
        LabError: a server failed, or the product did not follow within the deadline.
    """
    started_on = machine.describe_machine()
    with _bench(progress) as bench:
        figures: dict[str, float] = {"nodes": len(bench.nodes), "changes": changes}
        with progress.step(f"changing origin {changes} times"):
            figures |= _capacities(bench, changes)
        with progress.step(f"changing YARN's use {changes} times"):
            figures |= _claims(bench, changes)
        return Result.of_now(NAME, figures, started_on=started_on, hadoop_version=bench.lab.hadoop_version, notes=NOTES)


@contextlib.contextmanager
def _bench(progress: Progress) -> Iterator[_Bench]:
    with Lab(progress=progress) as lab, contextlib.ExitStack() as workers:
        nodes = {}
        for number, manager in enumerate(lab.yarn.node_managers):
            spec = NodeSpec(name=f"node-{number}", batch_cpu_milli=_ORIGIN[0], batch_memory_bytes=_ORIGIN[1])
            lab.enroll(manager, spec)
            lab.objects.write_node_metric(spec.name, {"updateTime": datetime.now(UTC).isoformat()})
            nodes[spec.name] = manager.node_id
        kubeconfig = str(lab.kubernetes.kubeconfig)
        access = ("--hadoop-conf-dir", str(lab.yarn.conf_dir), "--user", lab.yarn.operator_user)
        driver = workers.enter_context(Worker("driver", "--kubeconfig", kubeconfig))
        observer = workers.enter_context(Worker("observer", "--kubeconfig", kubeconfig, *access))
        controller = lab.controller(_CONFIG).start()
        controller.wait_ready()
        bench = _Bench(lab=lab, controller=controller, driver=driver, observer=observer, nodes=nodes)
        _expect(bench, {node_id: _target(*_ORIGIN) for node_id in nodes.values()})
        _seen(bench)
        yield bench
        controller.terminate()


def _capacities(bench: _Bench, changes: int) -> dict[str, float]:
    reader = UpdateReader(bench.lab.yarn.resource_manager.log_path)
    sent, applied, seen = [], [], []
    for number in range(changes):
        name, node_id = list(bench.nodes.items())[number % len(bench.nodes)]
        step = 1 + number // len(bench.nodes)
        origin = (_ORIGIN[0] - 20_000 * (step % 2) - 1_000 * (step % 13), _ORIGIN[1] - (step % 17) * 256 * _MIB)
        time.sleep(_PAUSE_SECONDS)
        reader.updates()
        _expect(bench, {node_id: _target(*origin)})
        text = bodies.origin(*origin)
        answered = bench.driver.ask("annotate", key=bodies.ORIGIN_ANNOTATION, texts={name: text})
        answered_at = answered["answered_at"][name]
        seen.append(_seen(bench)[node_id] - answered_at)
        updates = reader.updates_of([node_id])
        sent.append(updates.taken_at[node_id] - answered_at)
        applied.append(updates.applied_at[node_id] - answered_at)
    return {
        **percentiles("sent", sent),
        **percentiles("scheduler_applied", applied),
        **percentiles("propagation", seen),
    }


def _claims(bench: _Bench, changes: int) -> dict[str, float]:
    application = bench.lab.submit()
    rises, falls = [], []
    for number in range(changes):
        time.sleep(_PAUSE_SECONDS)
        if number % 2 == 0:
            rises.append(_follow(bench, lambda: _ask(application)))
        else:
            falls.append(_follow(bench, application.release))
    application.stop()
    return {
        **percentiles("claim", rises + falls),
        **percentiles("claim_rise", rises),
        **percentiles("claim_fall", falls),
    }


def _ask(application: Application) -> None:
    application.ask(count=1, memory_mib=2048, vcores=2)


def _follow(bench: _Bench, change_use: Any) -> float:
    """Change YARN's use; the time from the reading that shows it to the claim that says so."""
    before = _used(bench)
    change_use()
    changed_at: float | None = None
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        used = _used(bench)
        if changed_at is None and used != before:
            changed_at = time.monotonic()
        if changed_at is not None and all(_claimed(bench, name) == _expected(use) for name, use in used.items()):
            return time.monotonic() - changed_at
        time.sleep(_POLL_SECONDS)
    raise LabError(f"the claims did not follow YARN's use {used}; log: {bench.controller.process.tail()}")


def _used(bench: _Bench) -> dict[str, YarnResources]:
    found = {node["id"]: node for node in bench.lab.yarn.nodes()}
    return {
        name: YarnResources(
            memory_mib=int(found[node_id]["usedMemoryMB"]), vcores=int(found[node_id]["usedVirtualCores"])
        )
        for name, node_id in bench.nodes.items()
    }


def _claimed(bench: _Bench, name: str) -> BatchResources | None:
    annotations = bench.lab.objects.node(name)["metadata"].get("annotations", {})
    return read_third_party(annotations.get(bodies.THIRD_PARTY_ANNOTATION)).entry(ENTRY_NAME)


def _expected(used: YarnResources) -> BatchResources:
    """Give the claim of the documented rule: use, at least the floor that the NodeManager registered with."""
    vcores, memory_mib = max(used.vcores, 1), max(used.memory_mib, 1024)
    return BatchResources(cpu_milli=vcores * 1000, memory_bytes=memory_mib * _MIB)


def _target(cpu_milli: int, memory_bytes: int) -> list[int]:
    return [memory_bytes // _MIB, cpu_milli // 1000]


def _expect(bench: _Bench, targets: Mapping[str, list[int]]) -> None:
    bench.observer.begin("expect", targets=targets, timeout_seconds=_DEADLINE_SECONDS, interval_seconds=_POLL_SECONDS)
    bench.observer.read()


def _seen(bench: _Bench) -> dict[str, float]:
    answer = bench.observer.read()
    if answer["missing"]:
        raise LabError(f"{answer['missing']} never got their target; log: {bench.controller.process.tail()}")
    seen_at: dict[str, float] = answer["seen_at"]
    return seen_at


def main() -> None:
    """Measure, write the result and print it beside the one before."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.propagation", description=__doc__)
    parser.add_argument("--changes", type=int, default=150, help="changes of each kind (150)")
    parser.add_argument("--results", type=Path, default=results.FOLDER, help="folder of the result")
    arguments = parser.parse_args()
    results.run(NAME, lambda: measure(max(arguments.changes, 2), Progress()), aims=AIMS, folder=arguments.results)


if __name__ == "__main__":
    main()
