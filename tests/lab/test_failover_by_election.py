# SPDX-License-Identifier: Apache-2.0
"""Kill and freeze the active one of two real ResourceManagers under load; ZooKeeper and elector choose the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from lab.hadoop.pair import Pair
from tests.contract.hadoop.backend import until
from tests.lab.failover_load import stands_by, under_load

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def elected() -> Iterator[Pair]:
    """Run a pair with ZooKeeper and elector."""
    with Pair(zookeeper=True) as pair:
        yield pair


async def test_active_one_is_killed(elected: Pair) -> None:
    active = await asyncio.to_thread(elected.active)
    process = elected.resource_managers[active]
    await under_load(elected, [process.kill], name="active one killed")
    await asyncio.to_thread(process.start)
    await until(stands_by(elected, active), seconds=60)


async def test_active_one_falls_silent_and_comes_back(elected: Pair) -> None:
    active = await asyncio.to_thread(elected.active)
    process = elected.resource_managers[active]
    try:
        await under_load(elected, [process.pause], name="active one frozen")
    finally:
        process.resume()
    await until(stands_by(elected, active), seconds=60)
    assert await asyncio.to_thread(elected.active) != active
