# SPDX-License-Identifier: Apache-2.0
"""Record, beside the bridge, every version of the claims on Nodes and what provably ran meanwhile."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple, Self

import requests

from lab.cluster import Lab
from lab.hadoop.application import Application, Container
from tests.lab.bridge import MIB, MILLI_CORES_PER_VCORE, BridgedNode, Claim, claim_in

_READ_TIMEOUT_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.1
_SAMPLE_SECONDS: Final = 0.01
_GONE: Final = 410


class ClaimVersion(NamedTuple):
    """Hold one stored version of a Node: when the watch told it (monotonic seconds) and our entry in it."""

    at: float
    version: int
    claim: Claim | None


class ClaimWatch:
    """Watch all Nodes and keep every version in which our entry differs from the version before.

    It survives restarts of the API server: it goes on from the last version that it has seen.
    """

    def __init__(self, lab: Lab) -> None:
        self._url = f"{lab.kubernetes.url}/api/v1/nodes"
        self._session = lab.kubernetes.session()
        self._history: dict[str, list[ClaimVersion]] = {}
        self._version = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claim-watch", daemon=True)
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        listed = self._session.get(self._url, timeout=30).json()
        self._version = listed["metadata"]["resourceVersion"]
        for node in listed["items"]:
            self._take(node)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(10 * _READ_TIMEOUT_SECONDS)
        self._session.close()

    def history(self, node: BridgedNode) -> list[ClaimVersion]:
        """Return the versions so far, oldest first."""
        return list(self._history.get(node.name, []))

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow()
            except requests.RequestException:  # silent for a second, or the API server is down
                self._stop.wait(0.0 if self._version else _RETRY_SECONDS)

    def _follow(self) -> None:
        parameters = {"watch": "true", "resourceVersion": self._version, "allowWatchBookmarks": "true"}
        with self._session.get(
            self._url, params=parameters, stream=True, timeout=(_RETRY_SECONDS * 10, _READ_TIMEOUT_SECONDS)
        ) as answer:
            if answer.status_code != requests.codes.ok:
                self._stop.wait(_RETRY_SECONDS)
                return
            for line in answer.iter_lines(chunk_size=None):
                if line:
                    self._take_event(json.loads(line))
                if self._stop.is_set():
                    return

    def _take_event(self, event: dict[str, object]) -> None:
        found = event["object"]
        assert isinstance(found, dict)
        if event["type"] == "ERROR":
            self.problems.append(str(found.get("message")))
            self._stop.set()  # versions were lost: a test must not go on with a hole in the history
            return
        self._version = found["metadata"]["resourceVersion"]
        if event["type"] in {"ADDED", "MODIFIED"}:
            self._take(found)

    def _take(self, node: dict[str, dict[str, object]]) -> None:
        metadata = node["metadata"]
        annotations = metadata.get("annotations") or {}
        assert isinstance(annotations, dict)
        claim = claim_in(annotations)
        history = self._history.setdefault(str(metadata["name"]), [])
        if not history or history[-1].claim != claim:
            history.append(ClaimVersion(time.monotonic(), int(str(metadata["resourceVersion"])), claim))


@dataclass(slots=True)
class _Life:
    """Hold when a container was seen to run and when that stopped being certain."""

    container: Container
    began_at: float
    ended_at: float | None = None


class ContainerTruth:
    """Know from the application itself, at any moment, which containers run for certain.

    A container counts from when it was seen running until the test is about to give it back (`release`), or until
    it is seen to have ended.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._lives: dict[str, _Life] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="container-truth", daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(10.0)

    def release(self, containers: Iterable[Container]) -> None:
        """Give containers back; from now on they are not certain to run."""
        for container in containers:
            with self._lock:
                life = self._lives.get(container.id)
                if life is not None and life.ended_at is None:
                    life.ended_at = time.monotonic()
            self._application.release_container(container)

    def held(self) -> list[Container]:
        """Return the containers that run for certain now."""
        with self._lock:
            return [life.container for life in self._lives.values() if life.ended_at is None]

    def least(self, node: BridgedNode, since: float, until: float) -> Claim:
        """Compute the smallest sum, per resource, that ran on a node at any moment of a time span."""
        with self._lock:
            lives = [life for life in self._lives.values() if life.container.node == node.node_id]
        moments = {since, *(life.began_at for life in lives), *(life.ended_at for life in lives if life.ended_at)}
        sums = [_sum(lives, moment) for moment in moments if since <= moment <= until]
        return Claim(min(each.cpu_milli for each in sums), min(each.memory_bytes for each in sums))

    def _run(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        now = time.monotonic()
        running = {each.id: each for each in self._application.running()}
        with self._lock:
            for container_id, container in running.items():
                self._lives.setdefault(container_id, _Life(container, now))
            for container_id, life in self._lives.items():
                if container_id not in running and life.ended_at is None:
                    life.ended_at = now


def _sum(lives: Iterable[_Life], moment: float) -> Claim:
    alive = [
        life.container for life in lives if life.began_at <= moment and (not life.ended_at or moment < life.ended_at)
    ]
    return Claim(
        sum(each.vcores for each in alive) * MILLI_CORES_PER_VCORE, sum(each.memory_mib for each in alive) * MIB
    )


def claims_below_use(
    history: list[ClaimVersion], truth: ContainerTruth, node: BridgedNode, *, lag_seconds: float
) -> list[str]:
    """Find versions of a claim that are lower than what ran the whole time that they may be based on.

    A version is at fault when it is below, in either resource, the least that ran from `lag_seconds` before the version
    before it until its own arrival. `lag_seconds` covers the way of a reading through the bridge to the watch: a
    claim may be late to rise, it may not fall below what was there all the time.
    """
    faults = []
    for before, after in itertools.pairwise(history):
        least = truth.least(node, before.at - lag_seconds, after.at)
        claim = after.claim or Claim(0, 0)
        if claim.cpu_milli < least.cpu_milli or claim.memory_bytes < least.memory_bytes:
            faults.append(
                f"{node.name} version {after.version}: claimed {after.claim}, before {before.claim}, ran {least}"
            )
    return faults
