# SPDX-License-Identifier: Apache-2.0
"""Be the composition root of the controller: build all parts, join them, run them, end them in order."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from batch_resources.planner.plan import Planner, plan_node
from yarn_copilot.cli.cluster_clients import ClusterClients
from yarn_copilot.cli.clusters import surroundings
from yarn_copilot.cli.place import Place, find_place
from yarn_copilot.cli.reloading import ReloadTeller
from yarn_copilot.cli.supervising import Tasks, stop_on_signals
from yarn_copilot.config.loading import CONTROLLER, load_settings, settings_hash
from yarn_copilot.config.settings import NodeAgentSettings, Settings
from yarn_copilot.config.watching import ConfigWatcher
from yarn_copilot.controller.api.server import APIServer
from yarn_copilot.controller.ports import MakeNodeAgent
from yarn_copilot.controller.program import Controller, Outside
from yarn_copilot.controller.reading import Reader
from yarn_copilot.controller.steps import StepListener, ignore
from yarn_copilot.errors import ConfigError
from yarn_copilot.hadoop.configuration import ClusterFiles, read_cluster_files
from yarn_copilot.hadoop.configuration_watching import ClusterChanges, ClusterWatcher
from yarn_copilot.kube.client import KubeClient
from yarn_copilot.kube.clock import SystemClock
from yarn_copilot.kube.credentials import find_credentials
from yarn_copilot.kube.events import EventRecorder
from yarn_copilot.kube.lease import LeaseElector, LeaseSettings, Observer, SoleLeader
from yarn_copilot.node_agent.client import NodeAgentClient
from yarn_copilot.observability.logging import configure_logging
from yarn_copilot.observability.metrics import Metrics
from yarn_copilot.observability.version import program_version

logger = logging.getLogger(__name__)

_LAST_EVENTS_SECONDS: Final = 2.0
COLLECTOR_THRESHOLDS: Final = (10_000, 20, 20)
"""Python's own (700, 10, 10) spends a third of a start with 5,000 nodes on looking through lists being decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Hold what a program around the controller may put in; the product runs with the defaults.

    Attributes:
        decide: the planner.
        on_step: told of each step of a transfer.
    """

    decide: Planner = plan_node
    on_step: StepListener = ignore


def run_controller(config: Path, *, environ: Mapping[str, str], hooks: Hooks | None = None) -> int:
    """Run until a signal.

    Args:
        config: the settings file; it is watched while the program runs.
        environ: the process's environment.
        hooks: what a test puts in.

    Returns:
        The exit code: 0 after SIGTERM or SIGINT, 1 when a part ended that should not.

    Raises:
        ConfigError: the settings, the Hadoop configuration or the credentials are wrong; nothing was started.
    """
    settings = load_settings(config, environ)
    configure_logging(level=settings.log.level, format=settings.log.format)
    clusters = read_cluster_files(settings.hadoop.conf_dir, surroundings(settings.hadoop, environ))
    if not clusters.clusters:
        raise ConfigError("\n".join(clusters.errors.values()))
    logger.info(
        "Starting",
        extra={
            "version": program_version(),
            "config": config,
            "hash": settings_hash(settings),
            "clusters": ",".join(clusters.clusters),
        },
    )
    _spare_collector()
    return asyncio.run(_run(config, settings, clusters, environ, hooks or Hooks()))


def _spare_collector() -> None:
    """Keep the garbage collector from what is no garbage.

    Modules live as long as the process, so they are taken out of its sight. What is kept of nodes and pods are trees,
    which reference counts free; it has to look for cycles, but not after every 700 new objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


async def _run(
    config: Path, settings: Settings, clusters: ClusterFiles, environ: Mapping[str, str], hooks: Hooks
) -> int:
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        stack.enter_context(stop_on_signals(stop))
        parts = await _build(config, settings, clusters, environ, hooks, stack)
        server = APIServer(
            parts.reader, parts.metrics, bind_address=settings.server.bind_address, port=settings.server.port
        )
        await server.start()
        stack.push_async_callback(server.aclose)
        stack.push_async_callback(parts.shut_down)
        parts.start()
        ended_well = await parts.tasks.wait(stop)
    logger.info("Stopped")
    return 0 if ended_well else 1


class _Parts:
    """Hold what runs. The order of `shut_down` is what a clean hand-over rests on."""

    def __init__(
        self,
        controller: Controller,
        reader: Reader,
        *,
        events: EventRecorder,
        elector: LeaseElector | None,
        watcher: ConfigWatcher[Settings],
        cluster_watcher: ClusterWatcher,
        clients: ClusterClients,
        metrics: Metrics,
    ) -> None:
        self.reader = reader
        self.metrics = metrics
        self.tasks = Tasks()
        self._controller = controller
        self._events = events
        self._elector = elector
        self._watcher = watcher
        self._cluster_watcher = cluster_watcher
        self._clients = clients

    def start(self) -> None:
        self.tasks.start({"events": self._events.run(), "config": self._watcher.run()})
        if self._controller.settings.capacity.observes:
            self._controller.observe()
        elif self._elector is None:
            self._controller.leadership_changed(True, SoleLeader.term)
        else:
            self._elector.on_change(self._controller.leadership_changed)
            self.tasks.start({"lease": self._elector.run()})
        retries = self._clients.keep_trying(self._controller, self._controller.outside.clock.sleep)
        self.tasks.start(
            {
                "controller": self._controller.run(),
                "clusters": self._cluster_watcher.run(),
                "refused clusters": retries,
            }
        )

    async def shut_down(self) -> None:
        """Stop writing, then give the lease back, then tell what is left to tell."""
        await self.tasks.cancel("controller", "config", "clusters", "refused clusters")
        if self._elector is not None:
            await self._elector.release()
        await self.tasks.cancel()
        await self._events.drain(_LAST_EVENTS_SECONDS)


async def _build(
    config: Path,
    settings: Settings,
    clusters: ClusterFiles,
    environ: Mapping[str, str],
    hooks: Hooks,
    stack: AsyncExitStack,
) -> _Parts:
    clock, metrics = SystemClock(), Metrics()
    metrics.set_build(program_version())
    place = find_place(settings.leader_election, environ)
    source = find_credentials(environ, kubeconfig=settings.kubernetes.kubeconfig, context=settings.kubernetes.context)
    await source.load()  # missing or broken credentials end the start with a sentence
    client = KubeClient(source, settings.kubernetes, clock=clock)
    stack.push_async_callback(client.aclose)
    observes = settings.capacity.observes
    events = EventRecorder(client, about=place.about, instance=place.identity, clock=clock)
    events.is_muted = observes
    elector = None if observes else _elector(client, settings, place)
    leadership = Observer() if observes else elector or SoleLeader(place.identity)
    clients = ClusterClients(settings.hadoop, clock, events)
    stack.push_async_callback(clients.aclose)
    clients.tell_broken(clusters.errors)
    controller = Controller(
        settings,
        Outside(
            kubernetes=client,
            clusters=clients.ports(clusters.clusters),
            leadership=leadership,
            events=events,
            clock=clock,
            metrics=metrics,
            decide=hooks.decide,
            on_step=hooks.on_step,
            make_agent=_agents(settings.node_agents),
        ),
    )
    teller = ReloadTeller(
        config,
        settings,
        metrics=metrics,
        events=events,
        apply=controller.apply,
        apply_to_later_clusters=clients.take_settings,
    )
    reader = Reader(
        controller,
        identity=place.identity,
        version=program_version(),
        config=teller.view,
    )
    metrics.set_table_source(reader.table)
    watcher = ConfigWatcher(
        config, schema=CONTROLLER, running=settings, environ=environ, on_reload=teller, sleep=clock.sleep
    )

    async def apply_clusters(changes: ClusterChanges) -> None:
        await clients.apply(changes, controller)

    cluster_watcher = ClusterWatcher(
        settings.hadoop.conf_dir,
        running=clusters,
        surroundings=surroundings(settings.hadoop, environ),
        on_change=apply_clusters,
        sleep=clock.sleep,
    )
    return _Parts(
        controller,
        reader,
        events=events,
        elector=elector,
        watcher=watcher,
        cluster_watcher=cluster_watcher,
        clients=clients,
        metrics=metrics,
    )


def _elector(client: KubeClient, settings: Settings, place: Place) -> LeaseElector | None:
    election = settings.leader_election
    if not election.enabled:
        return None
    return LeaseElector(
        client,
        LeaseSettings(
            name=election.lease_name,
            namespace=place.namespace,
            identity=place.identity,
            lease_duration_seconds=election.lease_duration_seconds,
            renew_deadline_seconds=election.renew_deadline_seconds,
            retry_period_seconds=election.retry_period_seconds,
            longest_call_seconds=max(settings.kubernetes.request_timeout_seconds, settings.hadoop.call_timeout_seconds),
        ),
    )


def _agents(settings: NodeAgentSettings) -> MakeNodeAgent | None:
    """Give how the programs beside NodeManagers are reached; None when nobody is to be asked."""
    if not settings.enabled:
        return None

    def make(address: str) -> NodeAgentClient:
        return NodeAgentClient(
            f"{'https' if settings.tls else 'http'}://{address}",
            timeout_seconds=settings.timeout_seconds,
            token_file=settings.token_file,
            ca_file=settings.ca_file,
            server_name=settings.server_name,
        )

    return make
