# SPDX-License-Identifier: Apache-2.0
"""Write the log that is judged: one watch of Nodes, one of pods, and the ResourceManager's own log.

The watches go on over restarts of the API server. A new API server knows no versions from before its start, so what was
stored and not told before its predecessor died is then read as a list: what came and went in that moment is not seen.
Such gaps are counted; whoever kills no API server may ask for none. A time without any answer is written into the log.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Self

import requests

from batch_resources.keys import (
    BATCH_CPU,
    BATCH_MEMORY,
    ENTRY_NAME,
    ORIGIN_ANNOTATION,
    PRIORITY_BATCH,
    THIRD_PARTY_ANNOTATION,
)
from batch_resources.quantities import quantity_ceil, quantity_floor
from batch_resources.resources import ZERO_BATCH, BatchResources
from lab.cluster import Lab
from lab.judge.books import total
from lab.judge.events import Event, NodeVersion, PodVersion, Silence, Verdict
from lab.judge.judging import Tolerance, judge
from lab.judge.resource_manager_log import read_events

_READ_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.1
_SILENT_SECONDS: Final = 2.0
"""A watch that is well is heard, or opened anew, at least so often."""
Take = Callable[[dict[str, Any], str], None]
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Recording:
    """Record inside `with`, judge afterwards or meanwhile."""

    def __init__(self, lab: Lab, node_of: Mapping[str, str]) -> None:
        """Take the lab and the node of each NodeManager, by node id."""
        self._lab = lab
        self._node_of = dict(node_of)
        self._events: list[Event] = []
        self._versions: dict[str, str] = {}
        self._heard_at: dict[str, float] = {}
        self._stop = threading.Event()
        self._log_path: Path = lab.yarn.resource_manager.log_path
        self._pods: dict[str, str] = {}
        self.problems: list[str] = []
        self.gaps = 0
        self._threads = [
            threading.Thread(target=self._follow, args=args, daemon=True, name=f"judge-{args[0]}")
            for args in (("/api/v1/nodes", self._take_node), ("/api/v1/pods", self._take_pod))
        ]
        self._ready = threading.Barrier(len(self._threads) + 1)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._ready.wait(30.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10 * _READ_SECONDS)

    def events(self) -> list[Event]:
        """Give what was recorded until now, in no order.

        Containers that were held before the recording began are found in the whole log of the ResourceManager.
        """
        text = self._log_path.read_text(errors="replace")
        return [*self._events, *read_events(text.splitlines())]

    def verdict(self, tolerance: Tolerance | None = None) -> Verdict:
        """Judge what was recorded until now."""
        return judge(self.events(), self._node_of, tolerance)

    # The watches

    def _follow(self, path: str, take: Take) -> None:
        with self._lab.kubernetes.session() as session:
            url = f"{self._lab.kubernetes.url}{path}"
            self._list(session, url, take)
            self._ready.wait(30.0)
            while not self._stop.is_set():
                try:
                    if not self._watch(session, url, take):
                        self._list(session, url, take)
                        self.gaps += 1
                except requests.RequestException:  # silent for a second, or the API server is down
                    self._stop.wait(_RETRY_SECONDS)

    def _list(self, session: requests.Session, url: str, take: Take) -> None:
        """Take all objects as they are, at the version of the list."""
        answer = session.get(url, timeout=30)
        answer.raise_for_status()
        listed = answer.json()
        version = listed["metadata"]["resourceVersion"]
        for item in listed["items"]:
            item["metadata"]["resourceVersion"] = version
            take(item, "ADDED")
        if take == self._take_pod:
            self._end_others({item["metadata"]["uid"] for item in listed["items"]}, int(version))
        self._versions[url] = version
        self._note_heard(url)

    def _note_heard(self, url: str) -> None:
        """Note that a watch tells what is stored, and if it did not for a while, since when."""
        now = time.time()
        since = self._heard_at.get(url, now)
        self._heard_at[url] = now
        if now - since >= _SILENT_SECONDS:
            self._events.append(Silence(since=since, at=now))

    def _end_others(self, uids: set[str], version: int) -> None:
        """Note the end of the pods that a list does not hold any more."""
        for uid, node in list(self._pods.items()):
            if uid not in uids:
                self._note_pod(uid, node, None, version)

    def _watch(self, session: requests.Session, url: str, take: Take) -> bool:
        """Follow for a while; tell whether the last version seen is still known."""
        parameters = {"watch": "true", "resourceVersion": self._versions[url], "allowWatchBookmarks": "true"}
        with session.get(url, params=parameters, stream=True, timeout=(_READ_SECONDS, _READ_SECONDS)) as answer:
            if answer.status_code == requests.codes.gone:
                return False
            if answer.status_code != requests.codes.ok:
                self._stop.wait(_RETRY_SECONDS)
                return True
            self._note_heard(url)
            for line in answer.iter_lines(chunk_size=None):
                if line and not self._take_line(url, json.loads(line), take):
                    return False
                if self._stop.is_set():
                    break
        return True

    def _take_line(self, url: str, event: dict[str, Any], take: Take) -> bool:
        found = event["object"]
        if event["type"] == "ERROR":
            if found.get("code") != requests.codes.gone:
                self.problems.append(str(found.get("message")))
            return False
        self._versions[url] = found["metadata"]["resourceVersion"]
        self._note_heard(url)
        if event["type"] != "BOOKMARK":
            take(found, event["type"])
        return True

    def _take_node(self, node: dict[str, Any], kind: str) -> None:
        if kind == "DELETED":
            return
        annotations = node["metadata"].get("annotations") or {}
        allocatable = node.get("status", {}).get("allocatable") or {}
        others, claimed = third_parties(annotations.get(THIRD_PARTY_ANNOTATION))
        self._events.append(
            NodeVersion(
                at=time.time(),
                version=int(node["metadata"]["resourceVersion"]),
                node=node["metadata"]["name"],
                origin=_origin(annotations.get(ORIGIN_ANNOTATION)),
                allocatable=_upper(allocatable),
                others=others,
                claimed=claimed,
            )
        )

    def _take_pod(self, pod: dict[str, Any], kind: str) -> None:
        node = pod["spec"].get("nodeName")
        if not node:
            return
        has_ended = kind == "DELETED" or pod.get("status", {}).get("phase") in _ENDED
        metadata = pod["metadata"]
        request = None if has_ended else _request(pod)
        self._note_pod(metadata["uid"], node, request, int(metadata["resourceVersion"]))

    def _note_pod(self, uid: str, node: str, request: BatchResources | None, version: int) -> None:
        if request is None:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = node
        self._events.append(PodVersion(at=time.time(), version=version, pod=uid, node=node, request=request))


def third_parties(text: str | None) -> tuple[BatchResources, BatchResources]:
    """Read the annotation as koord-manager does: what others hold at batch priority, and the bridge's entry."""
    others, ours = ZERO_BATCH, ZERO_BATCH
    for entry in json.loads(text or "{}").get("allocations") or []:
        if entry.get("priority") != PRIORITY_BATCH:
            continue
        amount = _upper(entry.get("resources") or {})
        if entry.get("name") == ENTRY_NAME:
            ours = ours + amount
        else:
            others = others + amount
    return others, ours


def _origin(text: str | None) -> BatchResources | None:
    resources = json.loads(text).get("resources") if text else None
    if not resources:
        return None
    return BatchResources(
        cpu_milli=quantity_floor(resources.get(BATCH_CPU)), memory_bytes=quantity_floor(resources.get(BATCH_MEMORY))
    )


def _request(pod: dict[str, Any]) -> BatchResources:
    containers = pod["spec"].get("containers") or []
    return total(_upper((each.get("resources") or {}).get("requests") or {}) for each in containers)


def _upper(quantities: Mapping[str, Any]) -> BatchResources:
    return BatchResources(
        cpu_milli=quantity_ceil(quantities.get(BATCH_CPU)), memory_bytes=quantity_ceil(quantities.get(BATCH_MEMORY))
    )
