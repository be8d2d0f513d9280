# SPDX-License-Identifier: Apache-2.0
"""Make the clients of YARN clusters, and let clusters come, change and go with the files of the Hadoop folder."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from yarn_copilot.cli.identities import identity_of, web_identity_of
from yarn_copilot.cli.reloading import ControllerEvents
from yarn_copilot.config.settings import HadoopSettings, Transport
from yarn_copilot.controller.clusters import ClusterPort
from yarn_copilot.controller.ports import ResourceManager
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import ClusterConfiguration, Surroundings
from yarn_copilot.hadoop.configuration_watching import WHOLE_DIRECTORY, ClusterChanges
from yarn_copilot.hadoop.failover import MonotonicClock
from yarn_copilot.hadoop.guarding import VersionGuard
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.demand import PartitionDemandReader
from yarn_copilot.hadoop.rest.scheduler import RestSchedulerReader
from yarn_copilot.hadoop.rest.transport import WebOptions, WebTransport
from yarn_copilot.observability.reasons import Reason

logger = logging.getLogger(__name__)

_VERSION_BYTES_MAX: Final = 1_048_576
_NODE_BYTES_MAX: Final = 1_048_576


def surroundings(hadoop: HadoopSettings, environ: Mapping[str, str]) -> Surroundings:
    """Say what `${...}` in Hadoop's files may refer to beside other keys."""
    return Surroundings(environ=environ, system_properties={"user.name": hadoop.user})


def transport_of(hadoop: HadoopSettings, cluster_id: str) -> Transport:
    """Say how a cluster is reached."""
    return hadoop.cluster_transports.get(cluster_id, hadoop.transport)


def addresses_of(cluster: ClusterConfiguration, transport: Transport) -> tuple[str, ...]:
    """Name the addresses that reads go to, for people."""
    found = cluster.web_addresses if transport is Transport.REST else cluster.client_addresses
    return tuple(str(address) for address in found)


def web_transport(
    cluster: ClusterConfiguration, hadoop: HadoopSettings, *, max_response_bytes: int | None = None
) -> WebTransport:
    """Make the transport to a cluster's web services.

    Raises:
        ConfigError: no web address is known, the authorities cannot be read, or a principal is malformed.
    """
    if not cluster.web_addresses:
        key = (
            "yarn.resourcemanager.webapp.https.address"
            if cluster.web.is_https
            else "yarn.resourcemanager.webapp.address"
        )
        raise ConfigError(
            f"cluster {cluster.id}: transport rest needs {key} or yarn.resourcemanager.hostname in its yarn-site.xml"
        )
    options = WebOptions(
        identity=web_identity_of(cluster, hadoop),
        call_timeout_seconds=hadoop.call_timeout_seconds,
        connect_timeout_seconds=hadoop.connect_timeout_seconds,
        max_response_bytes=max_response_bytes or hadoop.max_response_bytes,
        is_https=cluster.web.is_https,
        tls=_tls(hadoop) if cluster.web.is_https else None,
        csrf_header=cluster.web.csrf_header,
    )
    return WebTransport(cluster.web_addresses, options)


def _tls(hadoop: HadoopSettings) -> ssl.SSLContext:
    path = hadoop.web_ca_file
    try:
        return ssl.create_default_context(cafile=None if path is None else str(path))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"hadoop.web_ca_file: {path}: no authorities can be read: {error}") from error


def rpc_client(cluster: ClusterConfiguration, hadoop: HadoopSettings, clock: MonotonicClock) -> ResourceManagerClient:
    """Make the client over Hadoop RPC.

    Raises:
        ConfigError: what the cluster asks for and the settings do not fit.
    """
    return ResourceManagerClient(
        cluster,
        user=hadoop.user,
        call_timeout_seconds=hadoop.call_timeout_seconds,
        connect_timeout_seconds=hadoop.connect_timeout_seconds,
        max_response_bytes=hadoop.max_response_bytes,
        identity=identity_of(cluster, hadoop),
        clock=clock,
    )


def resource_manager(cluster: ClusterConfiguration, hadoop: HadoopSettings, clock: MonotonicClock) -> ResourceManager:
    """Make a cluster's client over the transport of the settings, guarded against versions that it could crash.

    Raises:
        ConfigError: the cluster cannot be reached in this way.
    """
    force = hadoop.allow_unsafe_version
    if transport_of(hadoop, cluster.id) is Transport.REST:
        rest = RestResourceManagerClient(web_transport(cluster, hadoop))
        return VersionGuard(rest, read_version=rest.get_version, is_forced=force, clock=clock)
    inner = rpc_client(cluster, hadoop, clock)
    if not cluster.web_addresses:
        return VersionGuard(inner, read_version=None, is_forced=force, clock=clock)
    web = RestResourceManagerClient(web_transport(cluster, hadoop, max_response_bytes=_VERSION_BYTES_MAX))
    return VersionGuard(inner, read_version=web.get_version, is_forced=force, clock=clock, close=web.aclose)


class ClusterHolder(Protocol):
    """Be the controller, as far as its clusters go."""

    async def set_cluster(self, id_: str, port: ClusterPort) -> None:
        """Add a cluster, or lead to one in another way."""

    async def remove_cluster(self, id_: str) -> None:
        """Forget a cluster."""


@dataclass(slots=True)
class _Told:
    """Hold what a change ended with."""

    good: list[str]
    bad: list[str]


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
        bad: dict[str, str] = {}
        for id_, cluster in clusters.items():
            try:
                found[id_] = self.port(cluster)
            except ConfigError as error:
                bad[id_] = str(error)
        if not found:
            raise ConfigError("\n".join(bad.values()))
        self.tell_broken(bad)
        return found

    async def apply(self, changes: ClusterChanges, holder: ClusterHolder) -> None:
        """Carry out what the watcher found, one cluster after the other, and tell it."""
        told = _Told([], list(self._sentences(changes.broken)))
        for id_, cluster in {**changes.added, **changes.changed}.items():
            former = self._open.get(id_)
            try:
                port = self.port(cluster)
            except ConfigError as error:
                told.bad.append(str(error))
                continue
            await holder.set_cluster(id_, port)
            if former is not None:
                await former.aclose()
            told.good.append(f"cluster {id_} {'added' if id_ in changes.added else 'changed'}")
        for id_ in changes.removed:
            await holder.remove_cluster(id_)
            if (client := self._open.pop(id_, None)) is not None:
                await client.aclose()
            told.good.append(f"cluster {id_} removed")
        told.good.extend(f"the files of cluster {id_} are right again" for id_ in changes.mended)
        self._tell(told)

    async def aclose(self) -> None:
        """Close all clients."""
        while self._open:
            _, client = self._open.popitem()
            await client.aclose()

    def tell_broken(self, errors: Mapping[str, str]) -> None:
        """Tell at the start which clusters are left out."""
        self._tell(_Told([], list(self._sentences(errors))))

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
