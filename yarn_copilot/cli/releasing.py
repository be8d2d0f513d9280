# SPDX-License-Identifier: Apache-2.0
"""Release nodes: order it, wait until the controller has given everything back, then take the orders away.

The order stays while a controller works and would take the node up again; it goes when no controller holds the Lease.
(A controller also removes it from a node that has been without a NodeManager for long.)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from batch_resources.annotations.catalogue import ORDER_KEYS
from batch_resources.annotations.orders import Drain
from batch_resources.annotations.orders import write_order as order_text
from batch_resources.keys import DRAIN_ANNOTATION
from yarn_copilot.cli import node_orders
from yarn_copilot.cli.errors import CommandError
from yarn_copilot.cli.progress import Progress
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.errors import ForbiddenError, NotFoundError

_POLL_SECONDS: Final = 1.0
_LEASE_SPARE: Final = 2
"""A Lease counts as abandoned after so many times its duration: clocks of two machines may differ."""

_FREE_LOOKS: Final = 5


class ControllerState(StrEnum):
    """Say whether a controller works, as far as its Lease tells."""

    RUNNING = "running"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Name the controller's Lease."""

    name: str
    namespace: str

    def __str__(self) -> str:
        """Write it as `--lease` takes it."""
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Hold how a release ended: nodes with nothing of ours, with the order alone, deleted, and with something left."""

    clean: list[str] = field(default_factory=list)
    ordered: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    controller: ControllerState = ControllerState.UNKNOWN


class Release:
    """Release several nodes with one client."""

    def __init__(
        self,
        client: KubeClient,
        lease: Lease,
        *,
        progress: Progress,
        describe: Callable[[str], str],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take the caller's client, the controller's Lease, and who says in words how far a node is."""
        self._client = client
        self._lease = lease
        self._progress = progress
        self._describe = describe
        self._sleep = sleep

    async def order(self, names: Sequence[str], *, deadline: float | None, reason: str) -> None:
        """Write the orders; other orders of these nodes go, since a paused node could never be released."""
        text = order_text(Drain(deadline=deadline, releases=True, reason=reason))
        for name in names:
            await node_orders.write_order(self._client, name, {**dict.fromkeys(ORDER_KEYS), DRAIN_ANNOTATION: text})

    async def wait(self, names: Sequence[str], *, deadline: float | None) -> Outcome:
        """Wait until nothing but orders is left, the deadline is over, or nobody works on it.

        A node that is deleted meanwhile has nothing of ours any more.

        Args:
            names: the nodes.
            deadline: seconds since 1970; None: no end.

        Raises:
            CommandError: nodes or the Lease cannot be read; the orders stay.
        """
        outcome = Outcome()
        try:
            while True:
                outcome.controller = await self.controller_state()
                nodes = {name: await node_orders.find_node(self._client, name) for name in names}
                outcome.deleted = [name for name, node in nodes.items() if node is None]
                outcome.left = [name for name, node in nodes.items() if node and not node_orders.is_given_back(node)]
                states = {name: self._words(name, outcome) for name in names}
                self._progress.show(states, f"{len(names) - len(outcome.left)} of {len(names)} nodes given back")
                over = deadline is not None and datetime.now(UTC).timestamp() >= deadline
                if not outcome.left or over or outcome.controller is ControllerState.STOPPED:
                    break
                await self._sleep(_POLL_SECONDS)
        except CommandError as error:
            raise CommandError(f"{error}; the orders stay, run the same command again to go on waiting") from error
        finally:
            self._progress.end()
        outcome.ordered = [name for name in names if name not in {*outcome.left, *outcome.deleted}]
        return outcome

    def _words(self, name: str, outcome: Outcome) -> str:
        if name in outcome.deleted:
            return "the node was deleted"
        return (self._describe(name) or "waiting") if name in outcome.left else "given back"

    async def clear(self, outcome: Outcome) -> None:
        """Take the orders away from the nodes that are given back."""
        for name in outcome.ordered:
            await node_orders.write_order(self._client, name, dict.fromkeys(ORDER_KEYS))
        outcome.clean, outcome.ordered = outcome.ordered, []

    async def controller_state(self) -> ControllerState:
        """Say whether a controller works; a Lease that is free for a moment is only changing hands."""
        for _ in range(_FREE_LOOKS):
            state = await self._look()
            if state is not ControllerState.STOPPED:
                return state
            await self._sleep(_POLL_SECONDS)
        return ControllerState.STOPPED

    async def _look(self) -> ControllerState:
        with node_orders.told(f"lease {self._lease}"):
            try:
                spec = (await self._client.get_lease(self._lease.name, self._lease.namespace)).spec
            except (NotFoundError, ForbiddenError):
                return ControllerState.UNKNOWN
        if not spec.holderIdentity or not spec.renewTime:
            return ControllerState.STOPPED
        try:
            renewed = datetime.fromisoformat(spec.renewTime).timestamp()
        except ValueError:
            return ControllerState.UNKNOWN
        age = datetime.now(UTC).timestamp() - renewed
        return (
            ControllerState.STOPPED
            if age > _LEASE_SPARE * (spec.leaseDurationSeconds or 15)
            else ControllerState.RUNNING
        )
