# SPDX-License-Identifier: Apache-2.0
"""Look at one YARN cluster without changing anything.

Whether we may write is found out by an update of a node that cannot exist: the ResourceManager checks the caller first,
then its own role, then the node's id, and refuses the whole request there. Every wait has a deadline.
"""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, TypeVar

from yarn_copilot.cli import clusters
from yarn_copilot.cli.doctor.facts import ClusterFacts, DynamicResources, ManagerFacts, Role, SchedulerFile
from yarn_copilot.cli.identities import caller_of
from yarn_copilot.config.settings import Settings, Transport
from yarn_copilot.errors import ConfigError, YarnCopilotError
from yarn_copilot.hadoop import configuration, errors, xmlfile
from yarn_copilot.hadoop import configuration_defaults as keys
from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.configuration import ClusterConfiguration, ResourceManagerAddresses
from yarn_copilot.hadoop.model import NodeId, NodeReport, NodeResourceUpdate, NodeState, Resource
from yarn_copilot.hadoop.rest import decoding
from yarn_copilot.hadoop.rest.authentication import WebIdentity
from yarn_copilot.hadoop.rest.client import RestResourceManagerClient
from yarn_copilot.hadoop.rest.transport import Request, WebOptions, WebTransport
from yarn_copilot.kube.clock import SystemClock

NOBODY: Final = NodeId("no-such-node.invalid", 1)
"""A node that cannot exist: `.invalid` is reserved for that (RFC 6761)."""

ASKED_NODE_MANAGERS: Final = 64
RESOLVED_HOSTS: Final = 512
PARALLEL: Final = 16
_NODE_MANAGER_SECONDS: Final = 2.0
_RESOLVE_SECONDS: Final = 5.0
_SMALL_ANSWER_BYTES: Final = 1_048_576
_TOLD_KEYS: Final = (
    keys.ADMIN_ACL,
    keys.ACL_ENABLED,
    keys.MINIMUM_MEMORY_MIB,
    keys.MINIMUM_VCORES,
    keys.SCHEDULER_CLASS,
)

T = TypeVar("T")
Progress = Callable[[str], None]


async def observe(
    cluster: ClusterConfiguration, settings: Settings, *, progress: Progress, resolve: Callable[[str], Awaitable[bool]]
) -> ClusterFacts:
    """Look at a cluster.

    Args:
        cluster: its configuration.
        settings: how it will be reached.
        progress: told what is being looked at.
        resolve: tells whether a host name can be resolved.
    """
    hadoop = settings.hadoop
    transport = clusters.transport_of(hadoop, cluster.id)
    progress(f"{cluster.id}: ResourceManagers")
    managers = await asyncio.gather(*(_manager(cluster, rm, settings, transport) for rm in cluster.resource_managers))
    reports: Sequence[NodeReport] | None = None
    read_error: YarnCopilotError | None = None
    try:
        reports = await _nodes(cluster, settings, transport)
    except YarnCopilotError as error:
        read_error = error
    progress(f"{cluster.id}: NodeManagers")
    active = [report for report in reports or () if report.state.is_active]
    registered, silent = await _registered(active, hadoop.user)
    scheduler_file, dynamic, unreadable = _further_files(settings.hadoop.conf_dir, cluster.id)
    return ClusterFacts(
        cluster=cluster,
        transport=transport,
        user=caller_of(cluster, hadoop),
        proxy_user=hadoop.proxy_user,
        is_forced=hadoop.allow_unsafe_version,
        floor=Resource(settings.yarn.floor_memory_mib, settings.yarn.floor_vcores),
        managers=tuple(managers),
        reports=reports,
        read_error=read_error,
        registered=registered,
        silent_managers=silent,
        unresolvable=await _unresolvable({report.node_id.host for report in active}, resolve),
        scheduler_file=scheduler_file,
        dynamic_resources=dynamic,
        unreadable_files=unreadable,
        now=time.time(),
    )


async def can_be_resolved(host: str) -> bool:
    """Ask the resolver of this machine."""
    try:
        await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return True


async def _manager(
    cluster: ClusterConfiguration, rm: ResourceManagerAddresses, settings: Settings, transport: Transport
) -> ManagerFacts:
    """Look at one ResourceManager: its role by the port that writes go to, the rest by its web service."""
    alone = dataclasses.replace(cluster, resource_managers=(rm,))
    facts = ManagerFacts(
        rm_id=rm.rm_id,
        address=str(rm.web if transport is Transport.REST and rm.web is not None else rm.admin),
        role=Role.FAILED,
        web_address=None if rm.web is None else str(rm.web),
    )
    facts = await _with_web(facts, alone, settings)
    if transport is Transport.REST:
        role, error = await _web_role(alone, settings)
    else:
        role, error = await _rpc_role(alone, settings)
    return dataclasses.replace(facts, role=role, error=error)


async def _rpc_role(alone: ClusterConfiguration, settings: Settings) -> tuple[Role, YarnCopilotError | None]:
    try:
        client = clusters.rpc_client(alone, settings.hadoop, SystemClock())
    except ConfigError as error:
        return Role.FAILED, error
    try:
        await client.update_node_resource([NodeResourceUpdate(NOBODY, Resource(0, 0))])
    except errors.UnrecognizedNodeError:
        return Role.ACTIVE, None
    except errors.StandbyError:
        return Role.STANDBY, None
    except YarnCopilotError as error:
        return Role.FAILED, error
    finally:
        await client.aclose()
    return Role.ACTIVE, None


async def _web_role(alone: ClusterConfiguration, settings: Settings) -> tuple[Role, YarnCopilotError | None]:
    try:
        client = RestResourceManagerClient(clusters.web_transport(alone, settings.hadoop))
    except ConfigError as error:
        return Role.FAILED, error
    try:
        await client.get_cluster_metrics()
        await client.refuse_router()
    except errors.StandbyError:
        return Role.STANDBY, None
    except YarnCopilotError as error:
        return Role.FAILED, error
    finally:
        await client.aclose()
    return Role.ACTIVE, None


async def _with_web(facts: ManagerFacts, alone: ClusterConfiguration, settings: Settings) -> ManagerFacts:
    """Read version, clock and a few keys over the web service; a standby tells these too."""
    address = alone.resource_managers[0].web
    if address is None:
        return facts
    try:
        web = clusters.web_transport(alone, settings.hadoop, max_response_bytes=_SMALL_ANSWER_BYTES)
    except ConfigError as error:
        return dataclasses.replace(facts, web_error=error)
    try:
        info = await web.call(Request(method="GET", path="/ws/v1/cluster/info"))
        decoding.refuse_router(info)
        version = str(decoding.field(info, "clusterInfo", "resourceManagerVersion"))
        ahead = await _clock_ahead(web, address, settings.hadoop.call_timeout_seconds)
        properties = {key: value for key in _TOLD_KEYS if (value := await _property(web, key)) is not None}
    except YarnCopilotError as error:
        return dataclasses.replace(facts, web_error=error)
    finally:
        await web.aclose()
    return dataclasses.replace(facts, version=version, clock_ahead_seconds=ahead, properties=properties)


async def _clock_ahead(web: WebTransport, address: Address, timeout_seconds: float) -> float | None:
    """Compare clocks by the Date header, which is cut to the second."""
    before = time.time()
    try:
        async with asyncio.timeout(timeout_seconds):
            moment = parsedate_to_datetime(await web.date_of(address))
    except (ValueError, TypeError, TimeoutError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() + 0.5 - (before + time.time()) / 2


async def _property(web: WebTransport, key: str) -> str | None:
    """Read a key of a server's own configuration; None where it is not told."""
    try:
        document = await web.call(Request(method="GET", path="/conf", parameters={"name": key}))
        return str(decoding.field(document, "property", "value"))
    except errors.HadoopRPCError:
        return None


async def _nodes(cluster: ClusterConfiguration, settings: Settings, transport: Transport) -> Sequence[NodeReport]:
    if transport is Transport.REST:
        async with RestResourceManagerClient(clusters.web_transport(cluster, settings.hadoop)) as rest:
            return await rest.get_cluster_nodes()
    async with clusters.rpc_client(cluster, settings.hadoop, SystemClock()) as rpc:
        return await rpc.get_cluster_nodes()


async def _registered(reports: Sequence[NodeReport], user: str) -> tuple[Mapping[NodeId, Resource], tuple[NodeId, ...]]:
    """Ask NodeManagers, evenly chosen where there are many, what they register with."""
    running = [report for report in reports if report.state is NodeState.RUNNING]
    step = max(1, -(-len(running) // ASKED_NODE_MANAGERS))
    asked = running[::step]
    found = await _in_parallel([_ask(report, user) for report in asked])
    told = {report.node_id: size for report, size in zip(asked, found, strict=True) if size is not None}
    return told, tuple(report.node_id for report, size in zip(asked, found, strict=True) if size is None)


async def _ask(report: NodeReport, user: str) -> Resource | None:
    """Read a NodeManager's configured capacity; None where it does not tell, or finds out by itself (-1)."""
    try:
        address = Address.parse(report.http_address)
    except ValueError:
        return None
    options = WebOptions(
        identity=WebIdentity(user=user),
        call_timeout_seconds=_NODE_MANAGER_SECONDS,
        connect_timeout_seconds=_NODE_MANAGER_SECONDS,
        max_response_bytes=_SMALL_ANSWER_BYTES,
    )
    web = WebTransport([address], options)
    try:
        memory = await _property(web, keys.NODE_MEMORY_MIB)
        vcores = None if memory is None else await _property(web, keys.NODE_VCORES)
    finally:
        await web.aclose()
    if memory is None or vcores is None or not (memory.strip().isdigit() and vcores.strip().isdigit()):
        return None
    return Resource(int(memory), int(vcores))


async def _unresolvable(hosts: Iterable[str], resolve: Callable[[str], Awaitable[bool]]) -> tuple[str, ...]:
    names = sorted(host for host in hosts if not _is_literal(host))[:RESOLVED_HOSTS]

    async def ask(host: str) -> bool:
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                return await resolve(host)
        except TimeoutError:
            return False

    found = await _in_parallel([ask(host) for host in names])
    return tuple(host for host, is_known in zip(names, found, strict=True) if not is_known)


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _in_parallel(asks: Sequence[Awaitable[T]]) -> list[T]:
    gate = asyncio.Semaphore(PARALLEL)

    async def one(ask: Awaitable[T]) -> T:
        async with gate:
            return await ask

    return await asyncio.gather(*(one(ask) for ask in asks))


def _further_files(
    conf_dir: Path, cluster_id: str
) -> tuple[SchedulerFile | None, DynamicResources | None, tuple[str, ...]]:
    """Read the files beside yarn-site.xml that the ResourceManager reads too."""
    site = configuration.site_file_of(conf_dir, cluster_id)
    scheduler: SchedulerFile | None = None
    dynamic: DynamicResources | None = None
    unreadable = []
    for name in ("capacity-scheduler.xml", "dynamic-resources.xml"):
        path = configuration.companion(site, name)
        if path is None:
            continue
        try:
            values = {item.name: item.value for item in xmlfile.read_properties(path) if item.value is not None}
        except ConfigError as error:
            unreadable.append(str(error))
            continue
        if name == "capacity-scheduler.xml":
            scheduler = SchedulerFile(path=path, calculator=values.get(keys.RESOURCE_CALCULATOR))
        else:
            nodes = (node.strip() for node in values.get(keys.DYNAMIC_NODES, "").split(","))
            dynamic = DynamicResources(path=path, nodes=tuple(node for node in nodes if node))
    return scheduler, dynamic, tuple(unreadable)
