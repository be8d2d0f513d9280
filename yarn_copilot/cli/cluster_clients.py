# SPDX-License-Identifier: Apache-2.0
"""Hold the clients of all YARN clusters, and let clusters come, change and go with the files of the Hadoop folder.

A cluster that the settings do not fit, or for which a file is missing, is refused: it is told once, stays as it was,
and is tried again when the settings file changes and from time to time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from yarn_copilot.cli.clusters import addresses_of, resource_manager, rpc_client, transport_of, web_transport
from yarn_copilot.cli.reloading import ControllerEvents
from yarn_copilot.config.settings import HadoopSettings, Transport
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.controller.ports import ResourceManager
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import ClusterConfiguration
from yarn_copilot.hadoop.configuration_watching import WHOLE_DIRECTORY, ClusterChanges
from yarn_copilot.hadoop.failover import MonotonicClock
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.demand import PartitionDemandReader
from yarn_copilot.hadoop.rest.scheduler import RestSchedulerReader
from yarn_copilot.observability.reasons import Reason

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 30.0
"""A refused cluster is tried again so often: a file that was missing may be there, and no watcher looks at it."""
LOOK_SECONDS: Final = 2.0
"""So soon after the settings file changed."""
_NODE_BYTES_MAX: Final = 1_048_576


class ClusterHolder(Protocol):
    """Be the controller, as far as its clusters go."""

    async def set_cluster(self, id_: str, port: ClusterPort) -> None:
        """Add a cluster, or lead to one in another way."""

    async def remove_cluster(self, id_: str) -> None:
        """Forget a cluster."""


@dataclass(slots=True)
class _Told:
    """Hold what a change ended with."""

    good: list[str] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Refused:
    """Hold a cluster that could not be led to, and why."""

    cluster: ClusterConfiguration
    why: str


@dataclass(frozen=True, slots=True)
class _Clients:
    """Hold what is open to one cluster."""

    resource_manager: ResourceManager
    scheduler: RestSchedulerReader | None
    queues: RestResourceManagerClient | None
    labels: ResourceManagerClient | None

    async def aclose(self) -> None:
        await self.resource_manager.aclose()
        if self.labels is not None:
            await self.labels.aclose()
        if self.scheduler is not None:
            await self.scheduler.aclose()
        if self.queues is not None:
            await self.queues.aclose()


class ClusterClients:
    """Own the clients of all clusters; belongs to one event loop."""

    def __init__(self, hadoop: HadoopSettings, clock: MonotonicClock, events: ControllerEvents) -> None:
        """Begin without clusters."""
        self._hadoop = hadoop
        self._clock = clock
        self._events = events
        self._open: dict[str, _Clients] = {}
        self._refused: dict[str, _Refused] = {}
        self._retry_at = clock.monotonic()
        self._turn = asyncio.Lock()
        """Changes of files and retries await the controller; one of them at a time."""

    @property
    def settings(self) -> HadoopSettings:
        """Give the settings for clusters that are led to from now on."""
        return self._hadoop

    @property
    def refused(self) -> Mapping[str, str]:
        """Say which clusters are refused now, and why."""
        return {id_: one.why for id_, one in self._refused.items()}

    def take_settings(self, hadoop: HadoopSettings) -> None:
        """Use settings as the file has them now for clusters that are led to from now on; the others keep theirs.

        The deadline of a call stays, since the lease was measured by it.
        """
        new = hadoop.model_copy(update={"call_timeout_seconds": self._hadoop.call_timeout_seconds})
        if new != self._hadoop:
            self._hadoop = new
            self._retry_at = self._clock.monotonic()

    def port(self, cluster: ClusterConfiguration) -> ClusterPort:
        """Make a cluster's port; its client is closed by `aclose`, or when the cluster changes or goes.

        Raises:
            ConfigError: the cluster cannot be reached in the way that the settings say.
        """
        client = resource_manager(cluster, self._hadoop, self._clock)
        transport = transport_of(self._hadoop, cluster.id)
        scheduler = queues = None
        if cluster.web_addresses:
            web = web_transport(cluster, self._hadoop, max_response_bytes=_NODE_BYTES_MAX)
            scheduler = RestSchedulerReader(web)
            queues = RestResourceManagerClient(web_transport(cluster, self._hadoop))
        # A client of its own, which connects with its first call: the guard in front of the other one has no labels.
        labels = rpc_client(cluster, self._hadoop, self._clock) if transport is Transport.RPC else None
        self._open[cluster.id] = _Clients(client, scheduler, queues, labels)
        return ClusterPort(
            resource_manager=client,
            scheduler=scheduler,
            labels=labels,
            partitions=PartitionDemandReader(queues),
            addresses=addresses_of(cluster, transport),
            heartbeat_seconds=cluster.heartbeat_seconds,
        )

    def ports(self, clusters: Mapping[str, ClusterConfiguration]) -> dict[str, ClusterPort]:
        """Make the ports of the start; a cluster that the settings cannot reach is told and left out.

        Raises:
            ConfigError: none of them can be reached so.
        """
        found: dict[str, ClusterPort] = {}
        for id_, cluster in clusters.items():
            try:
                found[id_] = self.port(cluster)
            except ConfigError as error:
                self._refuse(cluster, error)
        if not found:
            raise ConfigError("\n".join(self.refused.values()))
        self.tell_broken(self.refused)
        return found

    async def apply(self, changes: ClusterChanges, holder: ClusterHolder) -> None:
        """Carry out what the watcher found, one cluster after the other, and tell it."""
        async with self._turn:
            told = _Told(bad=self._sentences(changes.broken))
            for id_, cluster in {**changes.added, **changes.changed}.items():
                try:
                    await self._lead_to(cluster, holder)
                except ConfigError as error:
                    self._refuse(cluster, error)
                    told.bad.append(str(error))
                else:
                    told.good.append(f"cluster {id_} {'added' if id_ in changes.added else 'changed'}")
            for id_ in changes.removed:
                await holder.remove_cluster(id_)
                self._refused.pop(id_, None)
                if (client := self._open.pop(id_, None)) is not None:
                    await client.aclose()
                told.good.append(f"cluster {id_} removed")
            told.good.extend(f"the files of cluster {id_} are right again" for id_ in changes.mended)
            self._tell(told)

    async def keep_trying(self, holder: ClusterHolder, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Try refused clusters again, for ever."""
        while True:
            await sleep(LOOK_SECONDS)
            await self.retry(holder)

    async def retry(self, holder: ClusterHolder) -> None:
        """Try refused clusters again if it is time or the settings have changed; tell what is new."""
        async with self._turn:
            if self._clock.monotonic() < self._retry_at:
                return
            self._retry_at = self._clock.monotonic() + RETRY_SECONDS
            told = _Told()
            for id_, refused in list(self._refused.items()):
                try:
                    await self._lead_to(refused.cluster, holder)
                except ConfigError as error:
                    self._refuse(refused.cluster, error)
                    if str(error) != refused.why:
                        told.bad.append(str(error))
                else:
                    told.good.append(f"cluster {id_} is no longer refused")
            self._tell(told)

    async def _lead_to(self, cluster: ClusterConfiguration, holder: ClusterHolder) -> None:
        """Hand a cluster's new port over, then close what led there before.

        Raises:
            ConfigError: there is no such port; nothing has changed.
        """
        former = self._open.get(cluster.id)
        await holder.set_cluster(cluster.id, self.port(cluster))
        self._refused.pop(cluster.id, None)
        if former is not None:
            await former.aclose()

    def _refuse(self, cluster: ClusterConfiguration, error: ConfigError) -> None:
        self._refused[cluster.id] = _Refused(cluster, str(error))

    async def aclose(self) -> None:
        """Close all clients."""
        while self._open:
            _, client = self._open.popitem()
            await client.aclose()

    def tell_broken(self, errors: Mapping[str, str]) -> None:
        """Tell at the start which clusters are left out."""
        self._tell(_Told(bad=self._sentences(errors)))

    @staticmethod
    def _sentences(errors: Mapping[str, str]) -> list[str]:
        return [
            f"the Hadoop folder cannot be read, every cluster stays as it is: {error}"
            if id_ == WHOLE_DIRECTORY
            else f"cluster {id_} is left as it was: {error}"
            for id_, error in errors.items()
        ]

    def _tell(self, told: _Told) -> None:
        if told.good:
            reason, message = Reason.CONFIGURATION_RELOADED, f"Hadoop configuration: {', '.join(told.good)}"
            logger.info("%s", message, extra={"reason": reason.value})
            self._events.controller_event(type="Normal", reason=reason.value, message=message)
        for message in told.bad:
            reason = Reason.CONFIGURATION_REJECTED
            logger.error("Hadoop configuration: %s", message, extra={"reason": reason.value})
            self._events.controller_event(type="Warning", reason=reason.value, message=message)
