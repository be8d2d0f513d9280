# SPDX-License-Identifier: Apache-2.0
"""Start, watch, restart and stop a NodeManager, with the agent beside it.

Three promises shape the order of things: no container starts before the agent watches (the agent is started first);
a crash of this process costs no container (the NodeManager is taken over, never started twice); a stop first waits
for containers, then stops the NodeManager, then ends what is left, all within the pod's grace.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nm_proxy.clock import Clock
from nm_proxy.draining import DrainState
from nm_proxy.rendering.overlay import Overlay
from nm_proxy.settings import NodeSettings
from nm_proxy.supervisor.agent_runner import AgentRunner
from nm_proxy.supervisor.conditions import Condition, Phase, why_not_ready
from nm_proxy.supervisor.metrics import SupervisorMetrics
from nm_proxy.supervisor.process import Launcher, LaunchError, NodeManagerProcess
from nm_proxy.supervisor.registration import is_connected
from nm_proxy.supervisor.restarting import Restarts
from yarn_copilot.errors import ConfigError, YarnCopilotError

logger = logging.getLogger(__name__)

AGENT_FIRST_SECONDS: Final = 10.0
"""How long the first NodeManager waits for the agent; without one, containers would run unlimited for a moment."""
LOOK_SECONDS: Final = 0.5
LAST_SECONDS: Final = 1.0
"""Part of the grace that is kept for ending this process itself."""
KILL_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """Hold how the configuration is written and what the NodeManager is started with.

    Attributes:
        write: render and write; raises `ConfigError`.
        environ: of the NodeManager.
        overlay: of the last good rendering.
    """

    write: Callable[[], Overlay]
    environ: Mapping[str, str]
    overlay: Overlay


class Supervisor:
    """Hold one NodeManager's life; belongs to one event loop."""

    def __init__(
        self,
        settings: NodeSettings,
        launcher: Launcher,
        rendering: Rendering,
        runner: AgentRunner,
        *,
        clock: Clock,
        metrics: SupervisorMetrics,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self._launcher = launcher
        self._rendering = rendering
        self._overlay = rendering.overlay
        self._runner = runner
        self._clock = clock
        supervisor = settings.supervisor
        self._restarts = Restarts(
            min_seconds=supervisor.restart_min_seconds,
            max_seconds=supervisor.restart_max_seconds,
            stable_seconds=supervisor.stable_seconds,
        )
        self.process: NodeManagerProcess | None = None
        runner.is_node_manager_running = lambda: self.process is not None
        self._started_at: float | None = None
        self._phase = Phase.STARTING
        self._configuration_error = ""
        self._stop_since: float | None = None
        self._stop_requested = asyncio.Event()
        self._is_final = False

    def request_stop(self, since: float | None = None) -> None:
        """Begin to stop; asking again changes nothing.

        Args:
            since: when the stop was asked for, monotonic seconds; None is now.
        """
        if self._stop_since is None:
            self._stop_since = self._clock.monotonic() if since is None else since
            self._stop_requested.set()

    def dump_threads(self) -> None:
        """Hand SIGQUIT on: Java writes what its threads do, and goes on."""
        if self.process is not None:
            self.process.signal(signal.SIGQUIT)

    def reload(self, settings: NodeSettings) -> None:
        """Take over new settings; what is not reloadable in them is as before."""
        self.settings = settings
        supervisor = settings.supervisor
        self._restarts.min_seconds = supervisor.restart_min_seconds
        self._restarts.max_seconds = supervisor.restart_max_seconds
        self._restarts.stable_seconds = supervisor.stable_seconds

    async def run(self) -> None:
        """Keep the NodeManager running until a stop was asked for and is done."""
        agent = asyncio.create_task(self._runner.run())
        keeping = asyncio.create_task(self._keep())
        try:
            stopping = asyncio.create_task(self._stop_requested.wait())
            await asyncio.wait({keeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                keeping.result()
            await self._drain()
            await self._end(keeping)
        finally:
            agent.cancel()
            keeping.cancel()
            await asyncio.gather(agent, keeping, return_exceptions=True)

    async def condition(self) -> Condition:
        """Look at everything that health and readiness depend on."""
        process, agent = self.process, self._runner.agent
        connected = process is not None and await asyncio.to_thread(
            is_connected, process.pid, self._overlay.tracker_ports
        )
        running_seconds = None if self._started_at is None else self._clock.monotonic() - self._started_at
        seen = Condition(
            phase=self._phase,
            failures=self._restarts.failures_now(running_seconds),
            is_connected=connected,
            agent_error=self._runner.error or ("" if self._runner.is_serving.is_set() else "it is starting"),
            configuration_error=self._configuration_error,
        )
        if agent is None:
            return seen
        view, containers = agent.reader.view, await self._runner.containers_left()
        return replace(
            seen,
            answering=view.answering,
            detail=view.detail,
            is_healthy=None if view.info is None else view.info.is_healthy,
            health_report="" if view.info is None else view.info.health_report,
            drain=agent.drain.state(containers=containers or 0) if containers is not None else DrainState.ACTIVE,
            containers=containers,
        )

    async def render_metrics(self) -> bytes:
        """Write this program's metrics and the agent's."""
        self.metrics.ready.set(not why_not_ready(await self.condition()))
        agent = self._runner.agent
        text = self.metrics.render()
        return text if agent is None else text + await asyncio.to_thread(agent.metrics.render)

    # Keeping it running

    async def _keep(self) -> None:
        process = self._take_over()
        while True:
            if process is None:
                await self._let_agent_go_first()
                if await self._is_over():
                    return
                process = self._start()
            if process is not None:
                await self._watch(process)
            if self._is_final:
                return
            ran = 0.0 if self._started_at is None else self._clock.monotonic() - self._started_at
            self._started_at = None
            wait = self._restarts.ended(ran)
            self._enter(Phase.BACKING_OFF)
            logger.warning(
                "The NodeManager is started again after a wait",
                extra={
                    "wait_seconds": round(wait, 1),
                    "ran_seconds": round(ran, 1),
                    "in_a_row": self._restarts.failures,
                },
            )
            process = None
            await self._clock.sleep(wait)

    def _take_over(self) -> NodeManagerProcess | None:
        process = self._launcher.find_running()
        if process is not None:
            self.metrics.takeovers.inc()
            logger.warning("Took over a running NodeManager", extra={"pid": process.pid})
        return process

    async def _is_over(self) -> bool:
        """Tell whether no further NodeManager is wanted: a stop has come, and nobody is left who needs one."""
        nobody = self._stop_requested.is_set() and await self._runner.containers_left() == 0
        return nobody or self._is_final

    async def _let_agent_go_first(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(AGENT_FIRST_SECONDS):
                await self._runner.is_serving.wait()
        if not self._runner.is_serving.is_set():
            logger.error(
                "The NodeManager starts without the agent; its containers have no limits until the agent works",
                extra={"error": self._runner.error or "it is still starting"},
            )

    def _start(self) -> NodeManagerProcess | None:
        self._render()
        try:
            process = self._launcher.start(self._rendering.environ)
        except LaunchError as error:
            logger.error("The NodeManager does not start", extra={"error": str(error)})  # noqa: TRY400 - expected
            return None
        self.metrics.starts.inc()
        logger.info("Started the NodeManager", extra={"pid": process.pid, "node_id": self._node_id()})
        return process

    def _render(self) -> None:
        """Write the configuration; the last good one stays in use when the operator's files have become wrong."""
        try:
            self._overlay = self._rendering.write()
        except ConfigError as error:
            self.metrics.renderings_failed.inc()
            self._configuration_error = str(error)
            logger.error("The last good Hadoop configuration stays in use", extra={"error": str(error)})  # noqa: TRY400
        else:
            self._configuration_error = ""

    async def _watch(self, process: NodeManagerProcess) -> None:
        self.process = process
        self._started_at = self._clock.monotonic()
        self._enter(Phase.RUNNING)
        try:
            await process.exited.wait()
        finally:
            process.close()
            self.process = None
        how = process.how_it_ended()
        if self._is_final:
            logger.info("The NodeManager has stopped", extra={"how": how})
            return
        self.metrics.ends.inc()
        logger.warning("The NodeManager ended", extra={"how": how})

    # Stopping

    def _deadline(self) -> float:
        since = self._clock.monotonic() if self._stop_since is None else self._stop_since
        return since + self.settings.stop.grace_seconds - LAST_SECONDS

    async def _drain(self) -> None:
        """Wait until no container is left, or until the time for the NodeManager's own stop begins."""
        if self.settings.recovery.keep_on_stop:
            logger.info("Stopping; containers stay for the next NodeManager")
            return
        self._runner.request_drain()
        until = self._deadline() - self.settings.stop.node_manager_seconds
        logger.info(
            "Draining before the stop", extra={"at_most_seconds": round(max(until - self._clock.monotonic(), 0.0), 1)}
        )
        told: int | None = None
        while self._clock.monotonic() < until:
            left = await self._runner.containers_left()
            if left == 0:
                logger.info("No container is left")
                return
            if left != told:
                logger.info("Waiting for containers", extra={"left": left})
                told = left
            await self._clock.sleep(LOOK_SECONDS)
        logger.warning(
            "The grace is over and containers are left; they are ended now, a longer stop.grace_seconds waits for them",
            extra={"left": "unknown" if told is None else told},
        )

    async def _end(self, keeping: asyncio.Task[None]) -> None:
        self._is_final = True
        self._enter(Phase.STOPPING)
        process = self.process
        if process is not None:
            keeps = self.settings.recovery.keep_on_stop
            process.signal(signal.SIGTERM, is_alone=keeps)
            left = max(self._deadline() - KILL_SECONDS - self._clock.monotonic(), LAST_SECONDS)
            if not await _within(left, process.exited):
                logger.error("The NodeManager does not stop; killing it", extra={"pid": process.pid})
                process.signal(signal.SIGKILL, is_alone=keeps)
                await _within(KILL_SECONDS, process.exited)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await asyncio.shield(keeping)  # its last words
        keeping.cancel()
        if not self.settings.recovery.keep_on_stop:
            await self._end_leftovers()
        self._enter(Phase.STOPPED)

    async def _end_leftovers(self) -> None:
        """End processes that outlived their NodeManager: with hostPID nothing else would."""
        agent = self._runner.agent
        if agent is None:
            return
        left = max(self._deadline() - self._clock.monotonic(), LAST_SECONDS)
        try:
            for container in await agent.node.containers():
                if container.processes:
                    await agent.killer.end(container.container_id, timeout_seconds=left, asked_by="stop")
        except YarnCopilotError as error:
            logger.warning(
                "Processes of containers are left after the NodeManager and could not be ended",
                extra={"error": str(error)},
            )

    def _enter(self, phase: Phase) -> None:
        self._phase = phase
        self.metrics.set_phase(phase)

    def _node_id(self) -> str:
        return f"{self._overlay.host}:{self._overlay.port}"


async def _within(seconds: float, event: asyncio.Event) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
