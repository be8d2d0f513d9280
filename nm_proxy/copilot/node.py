# SPDX-License-Identifier: Apache-2.0
"""Offer what both APIs need from the rest of the agent, in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from batch_resources.resources import BatchResources
from nm_proxy.containers import Catalog, NodeContainer
from nm_proxy.copilot import answers
from nm_proxy.draining import Drain
from nm_proxy.killing import ContainerKiller
from nm_proxy.lingering.tracking import Lingering
from nm_proxy.node_view import NodeManagerView


@dataclass(frozen=True, slots=True, kw_only=True)
class CopilotNode:
    """Join the parts.

    Attributes:
        largest_ask: what the node has; an ask above it is refused.
        kill_timeout_seconds: the longest time of one kill, asked each time.
        monotonic: the clock of `lingering`.
    """

    catalog: Catalog
    killer: ContainerKiller
    view: Callable[[], NodeManagerView]
    lingering: Callable[[], Mapping[str, Lingering]]
    drain: Drain
    largest_ask: Callable[[], BatchResources]
    kill_timeout_seconds: Callable[[], float]
    monotonic: Callable[[], float]

    async def containers(self) -> list[NodeContainer]:
        """Read who is here: everyone but finished containers without processes."""
        every = await asyncio.to_thread(self.catalog.every)
        return [one for one in every if one.processes or (one.report is not None and not one.is_finished)]

    async def state(self) -> answers.State:
        """Read the state of the node."""
        here = await self.containers()
        return answers.state(
            self.drain.state(containers=len(here)), here, self.lingering(), self.view(), now=self.monotonic()
        )
