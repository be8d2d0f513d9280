# SPDX-License-Identifier: Apache-2.0
"""Measure what a move of the boundary costs in mode strict, and how long each side waits for capacity it asks for.

    python -m benchmarks.boundary --moves 5 --nodes 5000 --pods 50000

Real servers, three nodes, default times of mode strict. Calls are counted at the servers. After it, on fresh servers,
many nodes: see `benchmarks.scale.strict`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from batch_resources.quantities import quantity_floor
from batch_resources.resources import BatchResources
from benchmarks import machine, results
from benchmarks.results import Result
from benchmarks.samples import percentiles
from benchmarks.scale import strict
from benchmarks.scale.product import PATIENT_LEADER
from benchmarks.scale.stage import Size
from lab.cluster import Lab
from lab.hadoop.application import Application
from lab.koordinator.api import read_kubeconfig
from lab.koordinator.running import RunningStandIn
from lab.kubernetes.bodies import BATCH_CPU, BatchPod, NodeSpec
from lab.kubernetes.credentials import User
from lab.processes import probes
from lab.processes.progress import Progress

NAME: Final = "strict"
AIMS: Final[results.Figures] = {"steady_kubernetes_writes": 0, "steady_yarn_writes": 0}
_USER: Final = "yarn-copilot"
_GIB: Final = 1 << 30
_MACHINE: Final = BatchResources(cpu_milli=32_000, memory_bytes=64 * _GIB)
_ORIGIN: Final = (20_000, 40 * _GIB)
_CONTAINER_VCORES: Final = 3
_STEADY_SECONDS: Final = 30.0
_DEADLINE_SECONDS: Final = 180.0
NOTES: Final = (
    "Default times: settle 10 s, message lifetime 10 s, poll 1 s; no growth window. The stand-in for koord-manager "
    "keeps Koordinator's own 10 % and 300 s.",
    "yarn: from an ask for more vcores than the node has until the last container is handed out; kubernetes: from a "
    "pod that needs one core more than is published until it is bound.",
    "A move's reads are lists of a node's pods and reads of the Node.",
    "many_*: so many nodes and NodeManagers (the lab's fleet) on fresh servers that share this machine's cores with "
    "the controller and the stand-in; times of the servers' own logs, as in scale.json.",
    "many_* run with fresh_read_seconds 5 (2 by default) and a lease of 60 s: the API server of thousands of nodes has "
    "less than one core here.",
    "many_first_convergence: from the controller's start until the ResourceManager shows YARN's part of every node, "
    "every claim is written and koord-manager has published what is left.",
    "many_shrink: every origin falls to its half, as fast as koord-manager writes it (shrink_origins). sent, "
    "scheduler_applied and propagation count from each node's own fall; shrink_returned is when what YARN gave back "
    "was published for pods on every node.",
)
_CONFIG: Final[dict[str, Any]] = {"capacity": {"mode": "strict", "growth_window_seconds": 0}}
_MANY_CONFIG: Final[dict[str, Any]] = {
    "capacity": {"mode": "strict", "growth_window_seconds": 0, "strict": {"fresh_read_seconds": 5}},
    **PATIENT_LEADER,
}


@dataclass(frozen=True, slots=True)
class _Calls:
    """Hold what the controller called so far."""

    patches: int
    reads: int
    updates: int

    def since(self, before: _Calls) -> _Calls:
        return _Calls(self.patches - before.patches, self.reads - before.reads, self.updates - before.updates)


class _Stage:
    """Hold a running lab with a converged controller."""

    def __init__(self, lab: Lab, names: list[str]) -> None:
        self.lab = lab
        self.names = names
        self.first = lab.yarn.node_managers[0].node_id

    def calls(self) -> _Calls:
        count = self.lab.kubernetes.count_requests
        reads = count("list", "pods", user=_USER) + count("get", "nodes", user=_USER)
        return _Calls(count("patch", "nodes", user=_USER), reads, self.lab.yarn.count_update_calls())

    def vcores(self, number: int = 0) -> int:
        return self.lab.yarn.capacity(self.lab.yarn.node_managers[number].node_id)[1]

    def free_cores(self) -> int:
        """Give what kube-scheduler may book on the first node; there are no other pods than the benchmark's."""
        shown = self.lab.objects.node(self.names[0])["status"]["allocatable"]
        return quantity_floor(shown.get(BATCH_CPU, "0")) // 1000


@contextmanager
def _stage() -> Iterator[_Stage]:
    with Lab(users=[User(name=_USER, groups=["system:masters"])]) as lab, ExitStack() as stack:
        names = [f"node-{manager.identity.number}" for manager in lab.yarn.node_managers]
        for name, manager in zip(names, lab.yarn.node_managers, strict=True):
            lab.enroll(manager, NodeSpec(name=name, cpu="32", memory="64Gi"))
        koordinator = stack.enter_context(
            RunningStandIn(read_kubeconfig(lab.kubernetes.kubeconfig), nodes=names, machine=_MACHINE)
        )
        for name in names:
            koordinator.set_origin(name, *_ORIGIN)
        yield _Stage(lab, names)


def _seconds_until(condition: Callable[[], bool], what: str) -> float:
    began_at = time.monotonic()
    probes.wait_until(condition, what=what, timeout_seconds=_DEADLINE_SECONDS, poll_seconds=0.02)
    return time.monotonic() - began_at


def measure(moves: int, size: Size, progress: Progress) -> Result:
    """Measure few nodes and then many, each on a fresh lab."""
    started_on = machine.describe_machine()
    figures = _few_nodes(moves, progress)
    many = strict.measure(size, _MANY_CONFIG, progress)
    return Result.of_now(
        NAME,
        figures | {f"many_{name}": value for name, value in many.items()},
        started_on=started_on,
        hadoop_version="3.5.0",
        notes=NOTES,
    )


def _few_nodes(moves: int, progress: Progress) -> dict[str, float]:
    with _stage() as stage:
        progress.say("first convergence")
        controller = stage.lab.controller(_CONFIG, token=stage.lab.kubernetes.users[_USER].token).start()
        figures = {
            "nodes": float(len(stage.names)),
            "first_convergence_seconds": _seconds_until(
                lambda: all(stage.vcores(number) > 1 for number in range(len(stage.names))), "YARN has a part"
            ),
        }
        controller.wait_ready()
        time.sleep(_STEADY_SECONDS / 2)
        before = stage.calls()
        time.sleep(_STEADY_SECONDS)
        steady = stage.calls().since(before)
        figures |= {"steady_kubernetes_writes": steady.patches, "steady_yarn_writes": steady.updates}
        return figures | _moves(stage, moves, progress)


def _moves(stage: _Stage, moves: int, progress: Progress) -> dict[str, float]:
    application = stage.lab.submit()
    seconds: dict[str, list[float]] = {"yarn": [], "kubernetes": []}
    calls: dict[str, list[_Calls]] = {"yarn": [], "kubernetes": []}
    for number in range(moves):
        progress.say(f"move {number + 1} of {moves}, both ways")
        for side, move in (("yarn", _to_yarn), ("kubernetes", _to_kubernetes)):
            before = stage.calls()
            seconds[side].append(move(stage, application, number))
            calls[side].append(stage.calls().since(before))
    figures: dict[str, float] = {"moves": float(moves)}
    for side, values in seconds.items():
        figures |= percentiles(f"{side}_demand_to_usable", values)
        for name in ("patches", "reads", "updates"):
            figures[f"{side}_{name}_per_move"] = sum(getattr(each, name) for each in calls[side]) / moves
    return figures


def _to_yarn(stage: _Stage, application: Application, number: int) -> float:
    """Ask for more than the first node has, and wait until all is there."""
    wanted = stage.vcores() // _CONTAINER_VCORES + 1
    application.ask(count=wanted, memory_mib=1024, vcores=_CONTAINER_VCORES, node=stage.first)
    return _seconds_until(lambda: len(application.allocated()) >= wanted, "the containers are handed out")


def _to_kubernetes(stage: _Stage, application: Application, number: int) -> float:
    """Let YARN be idle and ask for a pod larger than what is published; wait until it is bound, then end it."""
    application.release(len(application.allocated()))
    _seconds_until(lambda: not application.allocated(), "the containers are given back")
    name = f"move-{number}"
    pod = BatchPod(
        name=name,
        cpu_milli=(stage.free_cores() + 1) * 1000,
        memory_bytes=_GIB,
        node_selector={"kubernetes.io/hostname": stage.names[0]},
    )
    stage.lab.objects.create_batch_pod(pod)
    taken = _seconds_until(lambda: stage.lab.objects.node_of_pod("default", name) is not None, "the pod is bound")
    stage.lab.objects.delete_pod("default", name)
    return taken


def main(
    moves: Annotated[int, typer.Option(min=1, help="Moves to either side.")] = 5,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes of the part with many.")] = 5_000,
    pods: Annotated[int, typer.Option(min=1, help="Pods there, those of the NodeManagers included.")] = 50_000,
    folder: Annotated[Path, typer.Option("--results", help="Folder of the result.")] = results.FOLDER,
) -> None:
    """Measure and write the result."""
    size = Size(nodes=nodes, pods=pods)
    results.run(NAME, lambda: measure(moves, size, Progress()), aims=AIMS, folder=folder)


if __name__ == "__main__":
    typer.run(main)
