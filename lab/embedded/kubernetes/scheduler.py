# SPDX-License-Identifier: Apache-2.0
"""Bind pending pods to the first node in name order where their requests fit: placement for the embedded lab.

This is not kube-scheduler: it looks at extended resources, nodeSelector and nothing else.
"""

from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import Any

import msgspec

from batch_resources.quantities import parse_quantity
from lab.embedded.kubernetes.resource_types import NODES, PODS, Target
from lab.embedded.kubernetes.store import Store
from lab.embedded.kubernetes.writing import Writer

_FINISHED = ("Succeeded", "Failed")
Amounts = dict[str, Fraction]


class FirstFitScheduler:
    """Watch a store and bind pods; `run` is its task."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer

    async def run(self) -> None:
        """Place pods whenever a node or pod changed, until cancelled."""
        wakeup = asyncio.Event()
        watched = [self._store.collection(type_).watchers for type_ in (NODES, PODS)]
        for watchers in watched:
            watchers.add(wakeup)
        try:
            while True:
                self.place_pending()
                await wakeup.wait()
                wakeup.clear()
        finally:
            for watchers in watched:
                watchers.discard(wakeup)

    def place_pending(self) -> int:
        """Bind what fits now and count it."""
        pods = [stored.decode() for stored in self._store.collection(PODS).sorted()]
        pending = [pod for pod in pods if not pod["spec"].get("nodeName") and _is_alive(pod)]
        if not pending:
            return 0
        free = self._free(pods)
        return sum(self._place(pod, free) for pod in pending)

    def _place(self, pod: dict[str, Any], free: dict[str, tuple[dict[str, str], Amounts]]) -> bool:
        wanted, selector = _requests(pod), pod["spec"].get("nodeSelector") or {}
        for node_name, (labels, left) in free.items():
            fits = all(left.get(key, Fraction(0)) >= amount for key, amount in wanted.items())
            if fits and selector.items() <= labels.items():
                for key, amount in wanted.items():
                    left[key] -= amount
                metadata = pod["metadata"]
                target = Target(PODS, metadata["namespace"], metadata["name"], "binding")
                self._writer.bind(target, msgspec.json.encode({"target": {"kind": "Node", "name": node_name}}))
                return True
        return False

    def _free(self, pods: list[dict[str, Any]]) -> dict[str, tuple[dict[str, str], Amounts]]:
        free: dict[str, tuple[dict[str, str], Amounts]] = {}
        for stored in self._store.collection(NODES).sorted():
            node = stored.decode()
            if not node.get("spec", {}).get("unschedulable"):
                allocatable = (node.get("status") or {}).get("allocatable") or {}
                amounts = {key: parse_quantity(value) for key, value in allocatable.items()}
                free[stored.name] = (node["metadata"].get("labels") or {}, amounts)
        for pod in pods:
            entry = free.get(pod["spec"].get("nodeName") or "")
            if entry is not None and _is_alive(pod):
                for key, amount in _requests(pod).items():
                    entry[1][key] = entry[1].get(key, Fraction(0)) - amount
        return free


def _is_alive(pod: dict[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") not in _FINISHED


def _requests(pod: dict[str, Any]) -> Amounts:
    total: Amounts = {}
    for container in pod["spec"].get("containers") or ():
        for key, value in ((container.get("resources") or {}).get("requests") or {}).items():
            total[key] = total.get(key, Fraction(0)) + parse_quantity(value)
    return total
