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
from dataclasses import dataclass, replace
from typing import Final

from batch_resources.resources import ZERO_BATCH, BatchResources, YarnResources
from lab.demo.agreement import UNITS, Aim, Sides, expected_claim, wrong_capacity
from lab.demo.backend import Backend, DemoNode, YarnReading
from lab.demo.excess import ExcessMeter, Holdings
from lab.demo.ledger import KubernetesLedger, NodeLedger
from lab.demo.propagation import MismatchMeter, PropagationMeter
from lab.demo.usage import Offer, UsageMeter, Waiting
from lab.errors import LabError
from lab.koordinator.publication import Publication

POLL_SECONDS: Final = 0.05
_READINGS_KEPT: Final = 4
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """Hold a node as both sides show it at one moment."""

    node: DemoNode
    ledger: NodeLedger
    capacity: YarnResources
    used: YarnResources
    floor: YarnResources
    aim: Aim | None = None

    @property
    def sides(self) -> Sides:
        """Give what the rules look at."""
        return Sides(ledger=self.ledger, capacity=self.capacity, used=self.used, floor=self.floor)

    @property
    def offer(self) -> Offer:
        """Give what each scheduler may still hand out."""
        offered = self.ledger.offered
        return Offer.of(
            self.ledger.origin,
            held=self.ledger.held,
            used=UNITS.to_batch(self.used),
            offered=0 if offered is None else offered.cpu_milli,
            capacity=UNITS.to_batch(self.capacity).cpu_milli,
        )

    @property
    def holdings(self) -> Holdings:
        """Give what both schedulers have and may have, in Koordinator's units."""
        return Holdings(
            held=self.ledger.held,
            used=UNITS.to_batch(self.used),
            offered=self.ledger.offered or ZERO_BATCH,
            capacity=UNITS.to_batch(self.capacity),
        )

    @property
    def in_use(self) -> BatchResources:
        """Give what both schedulers have handed out together, in Koordinator's units."""
        return self.holdings.in_use

    @property
    def is_oversold(self) -> bool:
        """Tell whether both together have handed out more than origin."""
        return not self.in_use.fits_in(self.ledger.origin)

    def held_over_origin(self) -> float:
        """Give the larger part of origin that is handed out, of cpu and memory; 0 where origin is 0."""
        origin, use = self.ledger.origin, self.in_use
        parts = [(use.cpu_milli, origin.cpu_milli), (use.memory_bytes, origin.memory_bytes)]
        return max((used / total for used, total in parts if total > 0), default=0.0)


class Observer:
    """Poll until cancelled and keep count. One task runs it; others read its attributes.

    Attributes:
        views: The newest view of each node by name; without those that the ResourceManager does not show as running
            or whose origin is not published.
        samples: Node views taken.
        oversold_samples: How many of them were oversold by somebody who took too much.
        excess_after_fall_samples: How many were oversold because origin fell below what both had.
        highest_held_over_origin: The largest part of an origin that was handed out.
        highest_on: The node where that was.
        origin_changes: Publications with another origin than the node's one before.
        meter: From a change of origin to the capacity that it asks for.
        claim_meter: From a change of YARN's use to the claim that says so.
    """

    def __init__(
        self,
        backend: Backend,
        ledger: KubernetesLedger,
        publications: Callable[[], Sequence[Publication]],
        *,
        strict: bool,
        waiting: Callable[[], Waiting],
    ) -> None:
        """Start without views.

        Args:
            backend: The cluster.
            ledger: Kubernetes as watched.
            publications: Gives everything that the stand-in has published so far.
            waiting: Counts what waits on both sides.
            strict: Whether nodes have to be as mode strict wants them, or as mode shared does.
        """
        self.views: dict[str, NodeView] = {}
        self.samples = 0
        self.oversold_samples = 0
        self.excess_after_fall_samples = 0
        self.highest_held_over_origin = 0.0
        self.highest_on = ""
        self.origin_changes = 0
        self.meter = PropagationMeter()
        self.claim_meter = MismatchMeter()
        self._backend = backend
        self._ledger = ledger
        self._publications = publications
        self.usage = UsageMeter()
        self._waiting = waiting
        self._taken_at: float | None = None
        self._strict = strict
        self._excess = ExcessMeter()
        self._seen = 0
        self._origins: dict[str, BatchResources] = {}
        self._uses: dict[str, deque[YarnResources]] = {}

    async def run(self) -> None:
        """Poll for ever; a ResourceManager that does not answer is asked again."""
        while True:
            began = time.monotonic()
            try:
                aims = await self._backend.read_aims() if self._strict else {}
                readings = await self._backend.read_yarn()
            except LabError as error:
                _log.info("no reading: %s", error)
            else:
                self._take(readings, aims, time.monotonic())
            await asyncio.sleep(max(POLL_SECONDS - (time.monotonic() - began), 0.001))

    def _take(self, readings: Mapping[str, YarnReading], aims: Mapping[str, Aim], at_seconds: float) -> None:
        # Changes are compared with the capacities of the round before: those of this round may show them already.
        self._note_publications()
        seconds = at_seconds - self._taken_at if self._taken_at is not None else 0.0
        self._taken_at, waiting = at_seconds, self._waiting()
        self.usage.take_waiting(waiting, seconds)
        for node in self._backend.nodes:
            reading = readings.get(node.node_id)
            ledger = self._ledger.read(node.name)
            if reading is None or ledger is None:
                self.views.pop(node.name, None)
            else:
                view = self._take_node(node, reading, ledger, aims.get(node.name), at_seconds)
                self.usage.take_node(view.offer, waiting, seconds)

    def _take_node(
        self, node: DemoNode, reading: YarnReading, ledger: NodeLedger, aim: Aim | None, at_seconds: float
    ) -> NodeView:
        uses = self._uses.setdefault(node.name, deque(maxlen=_READINGS_KEPT))
        uses.append(reading.used)
        used = reading.used
        for earlier in uses:
            used = used.at_least(earlier)
        view = NodeView(
            node=node,
            ledger=ledger,
            capacity=reading.capacity,
            used=used,
            floor=self._backend.floor,
            aim=aim,
        )
        self.views[node.name] = view
        self.samples += 1
        if self._excess.is_sold_twice(node.name, view.holdings, ledger.origin, at_seconds):
            self.oversold_samples += 1
        else:
            self.excess_after_fall_samples += view.is_oversold
        if view.held_over_origin() > self.highest_held_over_origin:
            self.highest_held_over_origin, self.highest_on = view.held_over_origin(), node.name
        self.meter.observed(node.name, at_seconds, is_applied=not self.wrong_capacity(view))
        self.claim_meter.observed(node.name, at_seconds, matches=not self.wrong_claim(view))
        return view

    def wrong_capacity(self, view: NodeView) -> str:
        """Say what is wrong with a node's capacity; empty when nothing is."""
        return wrong_capacity(view.sides, view.aim, strict=self._strict)

    def wrong_claim(self, view: NodeView) -> str:
        """Say what is wrong with a node's claim; empty when nothing is."""
        wanted = expected_claim(view.sides, strict=self._strict)
        return "" if view.ledger.claimed == wanted else f"claims {view.ledger.claimed} and should claim {wanted}"

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
            later = replace(view, ledger=replace(view.ledger, origin=made.origin))
            if self.wrong_capacity(later):
                self.meter.changed(made.node, made.sent_at)
