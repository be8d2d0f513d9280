# SPDX-License-Identifier: Apache-2.0
"""Keep updates from a ResourceManager that they could crash.

Wraps any client. The version is read over the web service together with a node list, every ten minutes: never on the
way of an update, whose deadline must end before the lease does. A version that cannot be read is unknown, not old:
updates pass, and that is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from yarn_copilot.hadoop import errors, versions
from yarn_copilot.hadoop.model import ClusterMetrics, NodeReport, NodeResourceUpdate, QueueInfo

logger = logging.getLogger(__name__)

REREAD_SECONDS: Final = 600.0


class UnsafeVersionError(errors.UnsupportedCallError):
    """Say that no update is sent to a ResourceManager of this version; nothing was sent."""


class MonotonicClock(Protocol):
    """Give seconds that never run backwards."""

    def monotonic(self) -> float:
        """Read the clock."""


class AnyResourceManager(Protocol):
    """Be what is wrapped: a client of this package over RPC or REST."""

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """List the nodes."""

    async def get_cluster_metrics(self) -> ClusterMetrics:
        """Count the nodes."""

    async def get_queue_info(self, queue: str) -> QueueInfo:
        """Read a queue."""

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Send a batch."""

    async def aclose(self) -> None:
        """Close connections."""


class VersionGuard:
    """Be the wrapped client; satisfies the same port."""

    def __init__(
        self,
        inner: AnyResourceManager,
        *,
        read_version: Callable[[], Awaitable[str]] | None,
        is_forced: bool,
        clock: MonotonicClock,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Take the client, which this guard owns from now on.

        Args:
            inner: does the work.
            read_version: asks the ResourceManager for its version; None where no web address is known.
            is_forced: send although the version is too old.
            clock: tells when the version is read again.
            close: closes what `read_version` uses, if `inner` does not.
        """
        self._inner = inner
        self._read_version = read_version
        self._is_forced = is_forced
        self._clock = clock
        self._close = close
        self._known: versions.Version | None = None
        self._read_at: float | None = None
        self._has_warned = False

    async def get_cluster_nodes(self) -> Sequence[NodeReport]:
        """List the nodes in all states; see the wrapped client. Now and then the version is read before."""
        await self._read_when_due()
        return await self._inner.get_cluster_nodes()

    async def get_cluster_metrics(self) -> ClusterMetrics:
        """Count the nodes by state; see the wrapped client."""
        return await self._inner.get_cluster_metrics()

    async def get_queue_info(self, queue: str) -> QueueInfo:
        """Read a queue with all queues below it; see the wrapped client."""
        return await self._inner.get_queue_info(queue)

    async def update_node_resource(self, updates: Sequence[NodeResourceUpdate]) -> None:
        """Send a batch unless the version forbids it; see the wrapped client.

        Raises:
            UnsafeVersionError: the ResourceManager is too old and writing is not forced; nothing was sent.
        """
        reason = "" if self._known is None else versions.why_not_to_write(self._known)
        if reason and not self._is_forced:
            raise UnsafeVersionError("yarn-copilot", f"{reason}; hadoop.allow_unsafe_version would send all the same")
        await self._inner.update_node_resource(updates)

    async def aclose(self) -> None:
        """Close connections."""
        await self._inner.aclose()
        if self._close is not None:
            await self._close()

    async def _read_when_due(self) -> None:
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= REREAD_SECONDS:
            self._read_at = now
            await self._read()

    async def _read(self) -> None:
        """Read the version; one that was known stays known when it cannot be read again."""
        try:
            if self._read_version is None:
                self._warn("no web address is configured")
                return
            self._known = versions.parse_version(await self._read_version())
        except (errors.HadoopRPCError, ValueError) as error:
            self._warn(str(error))
            return
        self._tell(self._known)

    def _warn(self, why: str) -> None:
        if self._known is None and not self._has_warned:
            self._has_warned = True
            logger.warning("The ResourceManager's version is not known, it is taken for recent: %s", why)

    def _tell(self, version: versions.Version) -> None:
        for sentence in versions.missing_guarantees(version):
            logger.warning("ResourceManager %s: %s", version, sentence)
        reason = versions.why_not_to_write(version)
        if reason and self._is_forced:
            logger.warning("Updates are sent all the same, as hadoop.allow_unsafe_version says: %s", reason)
