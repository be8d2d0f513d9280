# SPDX-License-Identifier: Apache-2.0
"""Watch both schedulers from outside the product, about twenty times a second.

The ResourceManager is asked directly. Right after an update it can show no use for some 60 ms while everything runs,
so use is the largest of the last readings of a node.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from batch_resources.resources import BatchResources, YarnResources
from batch_resources.units import UnitModel
from lab.demo.backend import Backend, DemoNode, YarnReading
from lab.demo.ledger import KubernetesLedger, NodeLedger
from lab.demo.propagation import MismatchMeter, PropagationMeter
from lab.errors import LabError
from lab.koordinator.publication import Publication

POLL_SECONDS: Final = 0.05
UNITS: Final = UnitModel(milli_cores_per_vcore=1000)
_READINGS_KEPT: Final = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """Hold a node as both sides show it at one moment."""

    node: DemoNode
    ledger: NodeLedger
    capacity: YarnResources
    used: YarnResources

    @property
    def in_use(self) -> BatchResources:
        """Give what both schedulers have handed out together, in Koordinator's units."""
        return self.ledger.held + UNITS.to_batch(self.used)

    @property
    def is_oversold(self) -> bool:
        """Tell whether both together have handed out more than origin."""
        return not self.in_use.fits_in(self.ledger.origin)

    def held_over_origin(self) -> float:
        """Give the larger part of origin that is handed out, of cpu and memory; 0 where origin is 0."""
        origin, use = self.ledger.origin, self.in_use
        parts = [(use.cpu_milli, origin.cpu_milli), (use.memory_bytes, origin.memory_bytes)]
        return max((used / total for used, total in parts if total > 0), default=0.0)

    def expected_capacity(self, floor: YarnResources) -> YarnResources:
        """Give the capacity that the documented rule asks for: what origin leaves beside pods, at least the floor."""
        return expected_capacity(self.ledger.origin, self.ledger.held, floor)

    def expected_claim(self, floor: YarnResources) -> BatchResources:
        """Give the claim that the documented rule asks for: what YARN uses, at least the floor."""
        return UNITS.to_batch(self.used.at_least(floor))


def expected_capacity(origin: BatchResources, held: BatchResources, floor: YarnResources) -> YarnResources:
    """Convert what is left for YARN; see `NodeView.expected_capacity`."""
    return UNITS.to_yarn((origin - held).floored()).at_least(floor)


class Observer:
    """Poll until cancelled and keep count. One task runs it; others read its attributes.

    Attributes:
        views: The newest view of each node by name; without those that the ResourceManager does not show as running.
        samples: Node views taken.
        oversold_samples: How many of them were oversold.
        highest_held_over_origin: The largest part of an origin that was handed out.
        highest_on: The node where that was.
        origin_changes: Publications with another origin than the node's one before.
        meter: From a change of origin to the capacity that it asks for.
        claim_meter: From a change of YARN's use to the claim that says so.
    """

    def __init__(
        self, backend: Backend, ledger: KubernetesLedger, publications: Callable[[], Sequence[Publication]]
    ) -> None:
        """Start without views.

        Args:
            backend: The cluster.
            ledger: Kubernetes as watched.
            publications: Gives everything that the stand-in has published so far.
        """
        self.views: dict[str, NodeView] = {}
        self.samples = 0
        self.oversold_samples = 0
        self.highest_held_over_origin = 0.0
        self.highest_on = ""
        self.origin_changes = 0
        self.meter = PropagationMeter()
        self.claim_meter = MismatchMeter()
        self._backend = backend
        self._ledger = ledger
        self._publications = publications
        self._seen = 0
        self._origins: dict[str, BatchResources] = {}
        self._uses: dict[str, deque[YarnResources]] = {}

    async def run(self) -> None:
        """Poll for ever; a ResourceManager that does not answer is asked again."""
        while True:
            began = time.monotonic()
            try:
                readings = await self._backend.read_yarn()
            except LabError as error:
                _log.info("the ResourceManager does not answer: %s", error)
            else:
                self._take(readings, time.monotonic())
            await asyncio.sleep(max(POLL_SECONDS - (time.monotonic() - began), 0.001))

    def _take(self, readings: Mapping[str, YarnReading], at_seconds: float) -> None:
        # Changes are compared with the capacities of the round before: those of this round may show them already.
        self._note_publications()
        for node in self._backend.nodes:
            reading = readings.get(node.node_id)
            if reading is None:
                self.views.pop(node.name, None)
            else:
                self._take_node(node, reading, at_seconds)

    def _take_node(self, node: DemoNode, reading: YarnReading, at_seconds: float) -> None:
        uses = self._uses.setdefault(node.name, deque(maxlen=_READINGS_KEPT))
        uses.append(reading.used)
        used = reading.used
        for earlier in uses:
            used = used.at_least(earlier)
        view = NodeView(node=node, ledger=self._ledger.read(node.name), capacity=reading.capacity, used=used)
        self.views[node.name] = view
        self.samples += 1
        self.oversold_samples += view.is_oversold
        if view.held_over_origin() > self.highest_held_over_origin:
            self.highest_held_over_origin, self.highest_on = view.held_over_origin(), node.name
        is_applied = reading.capacity == view.expected_capacity(self._backend.floor)
        self.meter.observed(node.name, at_seconds, is_applied=is_applied)
        matches = view.ledger.claimed == view.expected_claim(self._backend.floor)
        self.claim_meter.observed(node.name, at_seconds, matches=matches)

    def _note_publications(self) -> None:
        published = self._publications()
        fresh, self._seen = published[self._seen :], len(published)
        for made in fresh:
            if self._origins.get(made.node) == made.origin:
                continue
            self._origins[made.node] = made.origin
            self.origin_changes += 1
            view = self.views.get(made.node)
            if view is None:
                continue
            if view.capacity != expected_capacity(made.origin, view.ledger.held, self._backend.floor):
                self.meter.changed(made.node, made.sent_at)
