# SPDX-License-Identifier: Apache-2.0
"""Make the runs that are drawn: a day of load in 24 minutes, and one unit's way there and back."""

from __future__ import annotations

import random

from batch_resources.resources import BatchResources
from lab.load.day import OnlineDay
from tests.pictures.world import MEMORY, NODE, PictureWorld, Sample

DAY_SECONDS = 1440
"""A minute for each hour: load is compressed, times of the product and of Koordinator are real."""
_SIZE = BatchResources(cpu_milli=64_000, memory_bytes=MEMORY)
_RECLAIMED_PERCENT = 60
"""Koordinator's default share of cpu that may be reclaimed."""
_REPORT_SECONDS = 60
_FEED_SECONDS = 20
PODS_END = 90
"""In the transfer: when pods end and what they held is free for YARN."""
PODS_WAIT = 140
"""In the transfer: when other pods begin to wait."""


async def play_day(mode: str) -> list[Sample]:
    """Let online load take its course for a day, with work waiting on both sides."""
    online = OnlineDay(seed=7)
    world = PictureWorld(mode, _origin(online, 0))
    chance = random.Random("sharing")
    async with world:
        for second in range(0, DAY_SECONDS, _FEED_SECONDS):
            if second % _REPORT_SECONDS == 0 and second:
                world.set_origin(_origin(online, second))
            _feed(world, chance, second)
            await world.advance(_FEED_SECONDS)
    return world.samples


def _origin(online: OnlineDay, second: int) -> int:
    used = online.load(NODE, _SIZE, second * 86_400 / DAY_SECONDS).cpu_milli
    return max(_SIZE.cpu_milli * _RECLAIMED_PERCENT // 100 - used, 0)


def _feed(world: PictureWorld, chance: random.Random, second: int) -> None:
    """Submit what waits next; at night YARN has most to do, by day the pods."""
    hour = second * 24 / DAY_SECONDS
    for index in range(chance.choice((2, 3, 5)) if hour < 9 or hour > 21 else chance.choice((0, 1, 3))):
        seconds = chance.randrange(20, 90)
        if len(world.containers) < 40:
            world.submit_container(f"container-{second}-{index}", 2000, seconds)
    for index in range(chance.choice((0, 1, 3)) if 6 < hour < 19 else chance.choice((0, 1, 1))):
        seconds = chance.randrange(30, 120)
        if len(world.pods) < 12:
            world.submit_pod(f"pod-{second}-{index}", 3000, seconds)


async def play_transfer() -> list[Sample]:
    """Let the boundary go to YARN when pods end, and back when others wait."""
    world = PictureWorld("strict", 20_000)
    for index in range(6):
        world.submit_pod(f"early-{index}", 3000, PODS_END - 1.0)
    async with world:
        await world.advance(PODS_END - 10 - world.second)
        for index in range(9):
            world.submit_container(f"container-{index}", 2000, 48 if index < 4 else 300)
        await world.advance(PODS_WAIT - world.second)
        for index in range(3):
            world.submit_pod(f"late-{index}", 3000, 300)
        await world.advance(24)
    return world.samples
