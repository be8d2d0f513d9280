# SPDX-License-Identifier: Apache-2.0
"""Let an administrator change the active one of two real ResourceManagers under load."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator

import pytest

from lab.hadoop.pair import IDS, Pair
from tests.lab.failover_load import under_load
from yarn_copilot.hadoop import configuration, errors
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import HAServiceState

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def manual() -> Iterator[Pair]:
    """Run a pair that an administrator switches."""
    with Pair(zookeeper=False) as pair:
        yield pair


async def test_administrator_swaps_the_roles(manual: Pair) -> None:
    for old, new in (("rm1", "rm2"), ("rm2", "rm1")):
        await under_load(
            manual,
            [functools.partial(manual.make_standby, old), functools.partial(manual.make_active, new)],
            name=f"roles swapped by hand, {old} to {new}",
        )


async def test_status_and_both_on_standby(manual: Pair) -> None:
    active = await asyncio.to_thread(manual.active)
    other = next(rm_id for rm_id in IDS if rm_id != active)
    cluster = configuration.read_clusters(manual.conf_dir)["default"]
    async with ResourceManagerClient(cluster, user="yarn", call_timeout_seconds=2) as client:
        assert (await client.get_service_status(active)).state is HAServiceState.ACTIVE
        assert (await client.get_service_status(other)).state is HAServiceState.STANDBY
        await asyncio.to_thread(manual.make_standby, active)
        try:
            with pytest.raises(errors.StandbyError, match="not Active"):
                await client.check_for_decommissioning_nodes()
        finally:
            await asyncio.to_thread(manual.make_active, active)
        await client.check_for_decommissioning_nodes()
