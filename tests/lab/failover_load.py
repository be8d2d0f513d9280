# SPDX-License-Identifier: Apache-2.0
"""Raise a node's memory again and again while the active one changes, and compare with the servers' logs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from lab.hadoop.pair import IDS, Pair
from tests.contract.hadoop.backend import until
from yarn_copilot.hadoop import configuration, errors
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.model import HAServiceState, NodeId, NodeResourceUpdate, NodeState, Resource

SOON_SECONDS = 10.0
"""Ten times the aim of one second, for the time from new active to the first update."""
FIRST_MEMORY_MIB = 2048


@dataclass
class Load:
    """Raise one node's memory by 1 MiB again and again; read back where a call's fate is not known.

    Attributes:
        acknowledged: calls that were answered well.
        unknown: calls whose answer did not come; they may have been carried out.
        refused: calls refused while the new active one did not know the node yet.
        wanted: the last memory that was sent.
        longest_gap_seconds: longest time between two updates that arrived.
    """

    client: ResourceManagerClient
    node_id: NodeId
    wanted: int = FIRST_MEMORY_MIB
    acknowledged: int = 0
    unknown: int = 0
    refused: int = 0
    longest_gap_seconds: float = 0.0
    _ending: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Send one update after another until `end`."""
        last = time.monotonic()
        while not self._ending.is_set():
            self.wanted += 1
            await self._apply()
            self.longest_gap_seconds = max(self.longest_gap_seconds, time.monotonic() - last)
            last = time.monotonic()
            await asyncio.sleep(0.02)

    async def _apply(self) -> None:
        """Send the wanted memory until it is known to have arrived."""
        while True:
            try:
                await self.client.update_node_resource([NodeResourceUpdate(self.node_id, Resource(self.wanted, 2))])
            except errors.UnrecognizedNodeError:
                self.refused += 1
                await asyncio.sleep(0.02)
            except errors.HadoopRPCError as error:
                if not error.retryable:
                    raise
                self.unknown += error.may_have_been_applied
                if error.may_have_been_applied and await self.shown() == self.wanted:
                    return
            else:
                self.acknowledged += 1
                return

    async def shown(self) -> int | None:
        """Read the memory; None while the node is not RUNNING anywhere."""
        try:
            reports = await self.client.get_cluster_nodes()
        except errors.HadoopRPCError as error:
            if not error.retryable:
                raise
            return None
        for report in reports:
            if report.node_id == self.node_id and report.state is NodeState.RUNNING:
                return report.capability.memory_mib
        return None

    def end(self) -> None:
        """Finish the update at hand and stop."""
        self._ending.set()


async def under_load(pair: Pair, change: Sequence[Callable[[], None]], *, name: str) -> None:
    """Run the load, do something to the pair in a thread, and compare what was sent with the servers' logs."""
    node_id = pair.node_managers[0].node_id
    totals_before = len(pair.applied_memory(node_id))
    cluster = configuration.read_clusters(pair.conf_dir)["default"]
    before = pair.accepted_updates()
    async with ResourceManagerClient(cluster, user="yarn", call_timeout_seconds=4, connect_timeout_seconds=2) as client:
        load = Load(client, NodeId.parse(node_id))
        # Above all that was before, so that what a scheduler logs of it after this moment is not taken for late.
        load.wanted = max(FIRST_MEMORY_MIB, await load.shown() or 0, *pair.applied_memory(node_id))
        task = asyncio.create_task(load.run())
        task.add_done_callback(_told)
        await until(holds(lambda: load.acknowledged > 10))
        for step in change:
            await asyncio.to_thread(step)
        new_active = await asyncio.to_thread(pair.active)
        reached = load.acknowledged
        await until(holds(lambda: load.acknowledged > reached + 20), seconds=60)
        load.end()
        await task

        async def is_shown() -> bool:
            return await load.shown() == load.wanted

        await until(is_shown)
    after = pair.accepted_updates()
    carried_out = sum(after[rm_id] - before[rm_id] for rm_id in IDS)
    totals = pair.applied_memory(node_id)[totals_before:]
    first = pair.log_of(new_active).first_update(node_id)
    # Whatever the servers carried out beyond what was acknowledged or may have arrived was done twice.
    lost = max(0, load.acknowledged - carried_out)
    doubled = max(0, carried_out - load.acknowledged - load.unknown)
    late = sum(later < max(totals[:index]) for index, later in enumerate(totals) if index)
    print(
        f"\n{name}: {load.acknowledged} updates acknowledged, {load.unknown} of unknown fate, {carried_out} carried "
        f"out: {lost} lost, {doubled} doubled, {late} late (a total below one that was in force before it); "
        f"{load.refused} refused while {new_active} did not know the node"
    )
    print(
        f"after {new_active} became active: first call reached it {first.reached:.3f} s later, the NodeManager "
        f"registered {first.registered:.3f} s later, first update carried out {first.accepted:.3f} s later, "
        f"{first.after_registration:.3f} s after the registration; longest gap between two updates "
        f"{load.longest_gap_seconds:.2f} s"
    )
    assert (lost, doubled, late) == (0, 0, 0)
    assert first.reached < SOON_SECONDS
    assert first.accepted < SOON_SECONDS


def _told(task: asyncio.Task[None]) -> None:
    """Take note of how the load ended, also where the test has failed before."""
    if not task.cancelled():
        task.exception()


def holds(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    """Give a plain condition to `until`."""

    async def asked() -> bool:
        return condition()

    return asked


def stands_by(pair: Pair, rm_id: str) -> Callable[[], Awaitable[bool]]:
    """Give the condition that one of the pair is on standby to `until`."""

    async def asked() -> bool:
        return await asyncio.to_thread(pair.state_of, rm_id) is HAServiceState.STANDBY

    return asked
