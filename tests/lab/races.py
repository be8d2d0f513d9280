# SPDX-License-Identifier: Apache-2.0
"""Let batch pods and YARN containers race for nodes while their origin moves, as a seed says.

One load is some seconds on one node; several nodes play loads of their own at the same time. What the schedulers
decide, and when, is theirs; everything that is asked of them follows from the seed.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import requests

from lab.hadoop.application import Application
from lab.judge.events import Verdict
from lab.kubernetes.bodies import BatchPod
from tests.lab.bridge import GIB, BridgedNode
from tests.lab.strict import StrictLab

LOAD_SECONDS: Final = 4.0
_ORIGINS: Final = (6, 28)
_PREFIX: Final = "race"
_HOST_NAME: Final = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Action:
    """Be one thing that happens at a moment of a load."""

    at_seconds: float
    kind: str
    count: int
    size: int
    lasts_seconds: float


def plan_load(seed: int, seconds: float = LOAD_SECONDS) -> list[Action]:
    """Plan a load: bursts of pods and of containers, often at the same moment, and now and then another origin."""
    return sorted(_actions(random.Random(f"race/{seed}"), seconds), key=lambda action: action.at_seconds)


def _actions(choices: random.Random, seconds: float) -> Iterator[Action]:
    if choices.random() < 0.6:
        at = choices.uniform(0, seconds)
        yield Action(at, "origin", 1, choices.randint(*_ORIGINS), 0.0)
    for _ in range(choices.randint(1, 3)):
        # Either side asks for about all that a node ever has, mostly both at the same moment.
        at, who = choices.uniform(0, 0.7 * seconds), choices.random()
        if who < 0.85:
            lasts = choices.uniform(0.2, 0.8) * seconds
            yield Action(at, "pods", choices.randint(6, 12), choices.randint(1, 3), lasts)
        if who > 0.15:
            lasts = choices.uniform(0.2, 0.8) * seconds
            yield Action(
                at + choices.uniform(-0.1, 0.1), "containers", choices.randint(3, 7), choices.randint(2, 4), lasts
            )


@dataclass(slots=True)
class Races:
    """Play loads on the nodes of a strict lab."""

    found: StrictLab
    application: Application
    load_seconds: float = LOAD_SECONDS
    survives_errors: bool = False
    played: list[int] = field(default_factory=list)

    def play(self, seeds: Sequence[int]) -> None:
        """Play one load for each seed, as many at once as there are nodes."""
        nodes = self.found.nodes
        with ThreadPoolExecutor(len(nodes)) as pool:
            for first in range(0, len(seeds), len(nodes)):
                part = seeds[first : first + len(nodes)]
                list(pool.map(self._play_one, part, nodes))
                self.application.cancel_pending()
                self.played.extend(part)

    def play_until(self, is_over: Callable[[], bool], first: int) -> None:
        """Play loads without end, from a seed on, and leave no pod behind."""
        while not is_over():
            seeds = range(first + len(self.played), first + len(self.played) + len(self.found.nodes))
            self.play(list(seeds))
        for pod in self.found.bridge.objects.get("/api/v1/namespaces/default/pods")["items"]:
            if pod["metadata"]["name"].startswith(_PREFIX):
                self._delete(pod["metadata"]["name"])

    def _delete(self, name: str) -> None:
        with contextlib.suppress(*self._errors):
            self.found.bridge.objects.delete_pod("default", name)

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        return (requests.RequestException,) if self.survives_errors else ()

    def _play_one(self, seed: int, node: BridgedNode) -> None:
        began_at = time.monotonic()
        ends: list[tuple[float, str]] = []
        objects = self.found.bridge.objects
        for action in plan_load(seed, self.load_seconds):
            self._end_pods(ends, began_at + action.at_seconds)
            _wait_until(began_at + action.at_seconds)
            match action.kind:
                case "origin":
                    self.found.set_origin(node, action.size)
                case "pods":
                    names = [self.found.bridge.unique(f"{_PREFIX}-{seed}") for _ in range(action.count)]
                    with contextlib.suppress(*self._errors):
                        objects.create_batch_pods(_pod(name, node, action) for name in names)
                    ends += [(time.monotonic() + action.lasts_seconds, name) for name in names]
                case _:
                    self.application.ask(
                        count=action.count,
                        memory_mib=action.size * 1024,
                        vcores=action.size,
                        node=node.node_id,
                        duration_seconds=action.lasts_seconds,
                    )
        self._end_pods(ends, began_at + self.load_seconds)
        _wait_until(began_at + self.load_seconds)
        for _, name in ends:
            self._delete(name)

    def _end_pods(self, ends: list[tuple[float, str]], until: float) -> None:
        """Delete the pods whose time ends before a moment, each at its time."""
        for moment, name in sorted(ends):
            if moment > until:
                break
            _wait_until(moment)
            self._delete(name)
            ends.remove((moment, name))


def _pod(name: str, node: BridgedNode, action: Action) -> BatchPod:
    return BatchPod(
        name=name,
        cpu_milli=action.size * 1000,
        memory_bytes=action.size * GIB,
        node_selector={_HOST_NAME: node.name},
    )


def _wait_until(moment: float) -> None:
    time.sleep(max(moment - time.monotonic(), 0.0))


def figures(verdict: Verdict, loads: int) -> dict[str, Any]:
    """Give what a judgement says, as numbers."""
    return {
        "loads": loads,
        "violations": len(verdict.violations),
        "after_falls_of_origin": len(verdict.after_falls),
        "undecided": len(verdict.undecided),
        "claims_below_use": len(verdict.claims_below_use),
        "pods_bound": verdict.growths["kubernetes"],
        "containers_started": verdict.growths["yarn"],
        "oversold_seconds": verdict.oversold_seconds,
    }
