# SPDX-License-Identifier: Apache-2.0
"""Be Koordinator for all nodes of a benchmark: koordlets that report loads, and koord-manager, which publishes."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from batch_resources.resources import BatchResources
from benchmarks.scale import objects
from benchmarks.workers.serving import JsonObject, say, serve
from lab.koordinator.api import read_kubeconfig
from lab.koordinator.publication import Publication
from lab.koordinator.running import WHOLE
from lab.koordinator.stand_in import Pace, StandIn

_MACHINE: Final = BatchResources(cpu_milli=objects.MACHINE_CPU_MILLI, memory_bytes=objects.MACHINE_MEMORY_BYTES)
_PACE: Final = Pace(report_interval_seconds=86_400.0, workers=32)
"""Loads are reported when they change; what koordlets report at rest is measured in `benchmarks.scale`."""

_LOOK_SECONDS: Final = 0.1
_Amounts = Mapping[str, tuple[int, int]]


class Koordinator:
    """Hold the commands; amounts are milli-cores and bytes by node."""

    def __init__(self, stand_in: StandIn) -> None:
        """Take the running stand-in."""
        self._stand_in = stand_in

    async def set_origins(
        self, *, origins: _Amounts, allocatable: _Amounts | None = None, timeout_seconds: float
    ) -> JsonObject:
        """Let every node's load leave its origin; when that was published on each, and the given allocatable."""
        first = len(self._stand_in.publications)
        for node, amount in origins.items():
            load = _MACHINE - BatchResources(cpu_milli=amount[0], memory_bytes=amount[1])
            self._stand_in.set_load(node, load.cpu_milli, load.memory_bytes)
        return await self._published(origins, allocatable or {}, first, timeout_seconds)

    async def expect(self, *, allocatable: _Amounts, timeout_seconds: float) -> JsonObject:
        """Say that it is ready, and wait until from now on every node was published with the given allocatable."""
        first = len(self._stand_in.publications)
        say({"ready": True})
        return await self._published({}, allocatable, first, timeout_seconds)

    async def _published(
        self, origins: _Amounts, allocatable: _Amounts, first: int, timeout_seconds: float
    ) -> JsonObject:
        deadline = time.monotonic() + timeout_seconds
        by_origin, by_allocatable = _Awaited(origins), _Awaited(allocatable)
        while (by_origin.missing or by_allocatable.missing) and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_SECONDS)
            made = self._stand_in.publications
            for publication in made[first:]:
                by_origin.note(publication, _origin(publication))
                by_allocatable.note(publication, _allocatable(publication))
            first = len(made)
        return {
            "origin_at": by_origin.seen_at,
            "allocatable_at": by_allocatable.seen_at,
            "missing": [*by_origin.missing, *by_allocatable.missing],
        }


class _Awaited:
    """Hold what is still to be published, and when the rest was."""

    def __init__(self, expected: _Amounts) -> None:
        self.missing = {node: tuple(amount) for node, amount in expected.items()}
        self.seen_at: dict[str, float] = {}

    def note(self, made: Publication, shown: tuple[int, int] | None) -> None:
        if shown is not None and self.missing.get(made.node) == shown:
            self.seen_at[made.node] = made.answered_at
            del self.missing[made.node]


def _origin(made: Publication) -> tuple[int, int]:
    return made.origin.cpu_milli, made.origin.memory_bytes


def _allocatable(made: Publication) -> tuple[int, int] | None:
    offer = made.allocatable
    return None if offer is None else (round(offer.cpu_milli), round(offer.memory_bytes))


async def _main(arguments: argparse.Namespace) -> None:
    async with StandIn(read_kubeconfig(arguments.kubeconfig), strategy=WHOLE, pace=_PACE) as stand_in:
        koordinator = Koordinator(stand_in)
        await serve({"set_origins": koordinator.set_origins, "expect": koordinator.expect})


if __name__ == "__main__":
    _parser = argparse.ArgumentParser()
    _parser.add_argument("--kubeconfig", type=Path, required=True)
    asyncio.run(_main(_parser.parse_args()))
