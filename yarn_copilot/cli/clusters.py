# SPDX-License-Identifier: Apache-2.0
"""Make the clients of one YARN cluster, as its files and the settings say."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from yarn_copilot.cli.identities import identity_of, web_identity_of
from yarn_copilot.config.settings import HadoopSettings, Transport
from yarn_copilot.controller.ports import ResourceManager
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.client import ResourceManagerClient
from yarn_copilot.hadoop.configuration import ClusterConfiguration, Surroundings
from yarn_copilot.hadoop.failover import MonotonicClock
from yarn_copilot.hadoop.guarding import VersionGuard
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.transport import WebOptions, WebTransport

_VERSION_BYTES_MAX: Final = 1_048_576


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
