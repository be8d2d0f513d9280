# SPDX-License-Identifier: Apache-2.0
"""Measure the controller: its start, changes of one and of all nodes, and rest.

A change begins when the API server answered the PATCH of origin. "Sent" is when the ResourceManager's AdminService
logged the update of that node (so its own decoding is in it), "scheduler applied" when its scheduler logged it, and
"propagation" when a reading of the node list from outside showed the new capacity.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.moments import Call
from benchmarks.samples import percentiles
from benchmarks.scale import objects
from benchmarks.scale.stage import Stage
from lab.controller import ControllerProcess
from lab.errors import LabError
from lab.kubernetes import bodies

PATIENT_LEADER: Final[dict[str, Any]] = {
    "leader_election": {"lease_duration_seconds": 60, "renew_deadline_seconds": 45.0}
}
"""Longer than by default: a burst freezes the controller for some seconds, and servers that share two cores with
thousands of simulated nodes answer late; it is to stay leader."""

_CONFIG: Final[Mapping[str, Any]] = {"capacity": {"mode": "shared", "growth_window_seconds": 0}, **PATIENT_LEADER}
_TIMEOUT_SECONDS: Final = 600.0
_READ_INTERVAL_SECONDS: Final = 0.25
"""Between two readings of all nodes from outside: they cost the ResourceManager time that is the product's as well."""
_QUIET_SECONDS: Final = 3.0
_MIB: Final = 1 << 20
_WRITES: Final = frozenset({"create", "update", "patch", "delete"})


class Measurement:
    """Run the phases on one controller, in order."""

    def __init__(self, stage: Stage, config: Mapping[str, Any] = _CONFIG) -> None:
        """Prepare a controller with a configuration; it is started by `first_convergence`."""
        self._stage = stage
        self._step = 0
        self._started_at = 0.0
        self.controller: ControllerProcess = stage.lab.controller(config, name="controller", token=stage.user.token)

    def first_convergence(self) -> dict[str, float]:
        """Start the controller and wait until the RM shows every target and every claim is written."""
        stage, nodes = self._stage, self._stage.size.nodes
        self._refresh()
        stage.audit.calls()
        stage.updates.updates()
        self._expect(self._targets(0))
        began_at = self._started_at = time.monotonic()
        self.controller.start()
        seen_at = self._seen()
        calls = self._own_calls()
        while len(claims := [call for call in calls if _is_claim(call)]) < nodes:
            if time.monotonic() - began_at > _TIMEOUT_SECONDS:
                raise LabError(f"{len(claims)} of {nodes} claims were written; log: {self.controller.process.tail()}")
            time.sleep(0.2)
            calls += self._own_calls()
        updates = stage.updates.updates_of(seen_at)
        capacity = max(seen_at.values()) - began_at
        claimed = max(call.answered_at for call in claims) - began_at
        return {
            "first_convergence_seconds": max(capacity, claimed),
            "first_capacity_seconds": capacity,
            "first_claims_seconds": claimed,
            "first_request_seconds": min(call.arrived_at for call in calls) - began_at,
            "first_nodes_listed_seconds": _listed(calls, "nodes") - began_at,
            "first_pods_listed_seconds": _listed(calls, "pods") - began_at,
            "first_update_seconds": min(updates.taken_at.values()) - began_at,
            "last_update_seconds": max(updates.taken_at.values()) - began_at,
            "first_claim_seconds": min(call.arrived_at for call in claims) - began_at,
            "first_convergence_cpu_seconds": self._cpu_seconds(),
            "first_convergence_resident_mib": self._resident_mib(),
        }

    def single_changes(self) -> dict[str, float]:
        """Change one node after another."""
        stage = self._stage
        if not stage.size.single_changes:
            return {}
        self._wait_quiet()
        sent, seen = [], []
        self._step += 1
        texts = objects.origins(stage.size.nodes, self._step)
        targets = self._targets(self._step)
        for number in range(min(stage.size.single_changes, stage.size.nodes)):
            name, node_id = objects.node_name(number), objects.node_id(number)
            self._expect({node_id: targets[node_id]}, interval_seconds=0.02)
            answered = stage.driver.ask("annotate", key=bodies.ORIGIN_ANNOTATION, texts={name: texts[name]})
            answered_at = answered["answered_at"][name]
            seen.append(self._seen()[node_id] - answered_at)
            sent.append(stage.updates.updates_of([node_id]).taken_at[node_id] - answered_at)
        return {
            **percentiles("single_change_sent", sent),
            **percentiles("single_change_propagation", seen),
        }

    def mass_change(self) -> dict[str, float]:
        """Change all nodes as fast as the API server takes it."""
        return self._change_all(frozen=False)

    def burst(self) -> dict[str, float]:
        """Change all nodes while the controller is frozen: it sees all changes at the same moment."""
        return {f"burst_{key}": value for key, value in self._change_all(frozen=True).items()}

    def steady(self) -> dict[str, float]:
        """Watch it at rest, with every NodeMetric updated once."""
        stage = self._stage
        self._wait_quiet()
        self._own_calls()
        updates_before, cpu_before = stage.lab.yarn.count_update_calls(), self._cpu_seconds()
        began = time.monotonic()
        stage.driver.ask("report", nodes=objects.node_names(stage.size.nodes), seconds=stage.size.steady_seconds)
        took = time.monotonic() - began
        cpu = self._cpu_seconds() - cpu_before
        calls = [call for call in self._own_calls() if call.verb in _WRITES and call.resource != "leases"]
        events = sum(call.resource == "events" for call in calls)
        updates = stage.lab.yarn.count_update_calls() - updates_before
        return {
            "steady_seconds": took,
            "steady_cpu_percent": 100 * cpu / took,
            "steady_writes": len(calls) - events + updates,
            "steady_events": events,
            "resident_mib": self._resident_mib(),
            "peak_resident_mib": _peak_mib(self._process()),
            "metrics_scrape_seconds": self._scrape_seconds(),
        }

    def _change_all(self, *, frozen: bool) -> dict[str, float]:
        stage, nodes = self._stage, self._stage.size.nodes
        self._wait_quiet()
        stage.updates.updates()
        self._step += 1
        cpu_before, told_before = self._cpu_seconds(), self._told_sent()
        self._expect(self._targets(self._step))
        if frozen:
            self.controller.pause()
        driven = stage.driver.ask("annotate", key=bodies.ORIGIN_ANNOTATION, texts=objects.origins(nodes, self._step))
        resumed_at = time.monotonic()
        if frozen:
            self.controller.resume()
        seen_at = self._seen()
        updates = stage.updates.updates_of(seen_at)
        numbers = range(nodes)
        began = [resumed_at if frozen else driven["answered_at"][objects.node_name(number)] for number in numbers]
        first = resumed_at if frozen else driven["began_at"]
        told = self._told_sent()
        return {
            "mass_change_seconds": max(seen_at.values()) - first,
            "mass_change_driver_seconds": driven["seconds"],
            "mass_change_cpu_seconds": self._cpu_seconds() - cpu_before,
            **percentiles("sent", after(began, updates.taken_at)),
            **percentiles("scheduler_applied", after(began, updates.applied_at)),
            **percentiles("propagation", after(began, seen_at)),
            "sent_mean_told_by_product_seconds": (told[0] - told_before[0]) / max(told[1] - told_before[1], 1.0),
        }

    def _refresh(self) -> None:
        """Make every NodeMetric young: making all objects may take longer than one is believed."""
        self._stage.driver.ask("refresh", nodes=objects.node_names(self._stage.size.nodes))

    def _targets(self, step: int) -> dict[str, list[int]]:
        """Give what the ResourceManager must show after so many changes, see `objects.targets`."""
        return objects.targets(self._stage.size.nodes, self._stage.size.pods, step)

    def _expect(self, targets: Mapping[str, list[int]], *, interval_seconds: float = _READ_INTERVAL_SECONDS) -> None:
        observer = self._stage.observer
        observer.begin("expect", targets=targets, timeout_seconds=_TIMEOUT_SECONDS, interval_seconds=interval_seconds)
        observer.read()

    def _seen(self) -> dict[str, float]:
        answer = self._stage.observer.read()
        if answer["missing"]:
            log = self.controller.process.tail()
            raise LabError(
                f"{len(answer['missing'])} nodes never got their target, like {answer['missing'][:3]}: {log}"
            )
        seen_at: dict[str, float] = answer["seen_at"]
        return seen_at

    def _own_calls(self) -> list[Call]:
        return [call for call in self._stage.audit.calls() if call.user == self._stage.user.name]

    def _wait_quiet(self) -> None:
        """Wait until neither side got a write for some seconds."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        quiet_since, counted = time.monotonic(), self._stage.lab.yarn.count_update_calls()
        while time.monotonic() - quiet_since < _QUIET_SECONDS:
            if time.monotonic() > deadline:
                raise LabError("the controller goes on writing, though nothing changes")
            time.sleep(0.5)
            count = self._stage.lab.yarn.count_update_calls()
            if count != counted or any(_is_claim(call) for call in self._own_calls()):
                quiet_since, counted = time.monotonic(), count

    def _told_sent(self) -> tuple[float, float]:
        """Read the product's own figure as a second witness: sum of seconds and number of updates."""
        name = "yarn_copilot_capacity_propagation_seconds"
        labels = {"stage": "sent"}
        return (
            self.controller.metric(f"{name}_sum", labels),
            self.controller.metric(f"{name}_count", labels),
        )

    def _scrape_seconds(self) -> float:
        began = time.monotonic()
        self.controller.get("/metrics")
        return time.monotonic() - began

    def _process(self) -> psutil.Process:
        return psutil.Process(self.controller.process.pid)

    def _cpu_seconds(self) -> float:
        times = self._process().cpu_times()
        return float(times.user + times.system)

    def _resident_mib(self) -> float:
        return float(self._process().memory_info().rss) / _MIB


def _is_claim(call: Call) -> bool:
    return call.verb == "patch" and call.resource == "nodes" and call.code < 400


def _listed(calls: Sequence[Call], resource: str) -> float:
    return max(call.answered_at for call in calls if call.verb == "list" and call.resource == resource)


def after(began: Sequence[float], moments: Mapping[str, float]) -> list[float]:
    """Give how long each node took: the moments of its NodeManager, by node id, less when it began."""
    return [moments[objects.node_id(number)] - start for number, start in enumerate(began)]


def _peak_mib(process: psutil.Process) -> float:
    """Read the largest resident size so far (VmHWM), which a sampled figure would miss."""
    with Path(f"/proc/{process.pid}/status").open() as stream:
        for line in stream:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0
