# SPDX-License-Identifier: Apache-2.0
"""Be the supervisor's process, which init starts: `python -m nm_proxy.cli.supervise [--config FILE] -- COMMAND...`.

Nobody but init calls this. A code of `ExitCode` other than 1 tells init that starting again would not help, until this
process has once told it that the checks are passed.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nm_proxy.cli import settings_file
from nm_proxy.clock import SystemClock
from nm_proxy.exit_codes import ExitCode
from nm_proxy.preflight.findings import Severity, exit_code
from nm_proxy.preflight.judging import as_text, judge
from nm_proxy.preflight.observing import Surroundings, find_tree_or_none, observe, render_here
from nm_proxy.rendering.directory import write
from nm_proxy.rendering.overlay import Overlay
from nm_proxy.settings import SCHEMA, NodeSettings
from nm_proxy.supervisor.agent_runner import AgentRunner
from nm_proxy.supervisor.health_server import HealthServer
from nm_proxy.supervisor.init import CHECKED, INIT_VARIABLE, STOP_SINCE_OPTION
from nm_proxy.supervisor.metrics import SupervisorMetrics
from nm_proxy.supervisor.process import Launcher, is_recorded_alive
from nm_proxy.supervisor.signals import Signals
from nm_proxy.supervisor.supervisor import Rendering, Supervisor
from yarn_copilot.config.changes import describe_changes
from yarn_copilot.config.watching import ConfigWatcher, Reload
from yarn_copilot.errors import ConfigError, YarnCopilotError
from yarn_copilot.hadoop.configuration import DEFAULT_CLUSTER_ID
from yarn_copilot.observability.logging import configure_logging, set_level

logger = logging.getLogger("nm_proxy.cli.supervise")  # run as a module, __name__ is __main__

_PR_SET_PDEATHSIG: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """Hold the command line."""

    config: Path | None
    command: tuple[str, ...]
    stop_since: float | None


def parse(arguments: Sequence[str]) -> Invocation:
    """Read the command line that `run` and init write: options, `--`, the command, and perhaps when a stop began."""
    words = list(arguments)
    stop_since = None
    if len(words) >= 2 and words[-2] == STOP_SINCE_OPTION:
        stop_since = float(words[-1])
        words = words[:-2]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(prog="nm-proxy supervise")
    parser.add_argument("--config", type=Path)
    return Invocation(
        config=parser.parse_args(words[:at]).config, command=tuple(words[at + 1 :]), stop_since=stop_since
    )


def supervise(invocation: Invocation, environ: Mapping[str, str]) -> ExitCode:
    """Check, render and supervise until stopped."""
    try:
        settings = settings_file.load(invocation.config, environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return ExitCode.CONFIGURATION
    configure_logging(level=settings.log.level, format=settings.log.format)
    around = Surroundings(environ=environ)
    runs = is_recorded_alive(settings.supervisor.state_dir)
    if runs:
        # Its containers wait for the agent; and nothing that the checks find may end it.
        logger.warning("A NodeManager runs already; the node is not checked again")
    elif (code := _preflight(settings, invocation, around)) is not ExitCode.OK:
        return code
    try:
        asyncio.run(_run(settings, invocation, around))
    except ConfigError as error:
        logger.error("The configuration cannot be rendered", extra={"error": str(error)})  # noqa: TRY400 - expected
        return ExitCode.FAILED if runs else ExitCode.CONFIGURATION
    except YarnCopilotError as error:
        logger.error("The supervisor cannot start", extra={"error": str(error)})  # noqa: TRY400 - expected
        return ExitCode.FAILED
    return ExitCode.OK


def _preflight(settings: NodeSettings, invocation: Invocation, around: Surroundings) -> ExitCode:
    findings = judge(observe(settings, invocation.command, around, tries_port=True))
    if any(one.severity is not Severity.OK for one in findings):
        print(as_text(findings, shows_well=False), file=sys.stderr, flush=True)
    return exit_code(findings)


async def _run(settings: NodeSettings, invocation: Invocation, around: Surroundings) -> None:
    def write_rendering() -> Overlay:
        rendered = render_here(settings, around, detection)
        write(rendered, settings.hadoop.rendered_dir)
        prepare_recovery(rendered.overlay.recovery_directory, settings.hadoop.user)
        return rendered.overlay

    detection = find_tree_or_none(settings, around)
    overlay = _first_overlay(settings, around, write_rendering)
    tell_init(around.environ)
    clock, metrics = SystemClock(), SupervisorMetrics()
    pinned = settings.node_manager.model_fields_set
    joined = with_overlay(settings, overlay, pinned)
    runner = AgentRunner(joined, clock=clock)
    rendering = Rendering(
        write=write_rendering, environ=nodemanager_environment(settings, around.environ), overlay=overlay
    )
    launcher = Launcher(invocation.command, state_dir=settings.supervisor.state_dir, user=settings.hadoop.user)
    supervisor = Supervisor(joined, launcher, rendering, runner, clock=clock, metrics=metrics)
    if invocation.stop_since is not None:
        supervisor.request_stop(invocation.stop_since)
    signals = Signals()
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signals.on(number, supervisor.request_stop)
        signals.on(signal.SIGQUIT, supervisor.dump_threads)
        watcher = _settings_watcher(invocation.config, settings, around.environ, supervisor, runner)
        signals.on(signal.SIGHUP, watcher.look if watcher is not None else _do_nothing)
        await _serve(supervisor, watcher)
    finally:
        signals.close()


async def _serve(supervisor: Supervisor, watcher: ConfigWatcher[NodeSettings] | None) -> None:
    health = HealthServer(lambda: supervisor.settings.health, supervisor.condition, supervisor.render_metrics)
    port = await health.start()
    if port is not None:
        logger.info("Health is served", extra={"port": port})
    watching = asyncio.create_task(watcher.run() if watcher is not None else asyncio.Event().wait())
    try:
        await supervisor.run()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await health.aclose()


def _first_overlay(settings: NodeSettings, around: Surroundings, write_rendering: Callable[[], Overlay]) -> Overlay:
    """Render; while a NodeManager runs, what it was started with will do if the operator's files have become wrong."""
    try:
        return write_rendering()
    except ConfigError as error:
        if not is_recorded_alive(settings.supervisor.state_dir):
            raise
        logger.error("The configuration rendered before stays in use", extra={"error": str(error)})  # noqa: TRY400
    before = {"conf_dir": settings.hadoop.rendered_dir, "cluster": DEFAULT_CLUSTER_ID}
    former = settings.model_copy(update={"hadoop": settings.hadoop.model_copy(update=before)})
    return render_here(former, around, find_tree_or_none(settings, around)).overlay


def tell_init(environ: Mapping[str, str]) -> None:
    """Let init know that the checks are passed, if it is what started this process."""
    parent = os.getppid()
    if environ.get(INIT_VARIABLE) == str(parent):
        os.kill(parent, CHECKED)


def prepare_recovery(directory: Path | None, user: str | None) -> None:
    """Make the recovery directory, and give it to the NodeManager's user.

    Raises:
        ConfigError: it cannot be made, or the user does not exist.
    """
    if directory is None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if user is not None:
            shutil.chown(directory, user)
    except (OSError, LookupError) as error:
        raise ConfigError(
            f"{directory}: recovery.directory cannot be made or given to hadoop.user ({error}); mount a volume there "
            "that nm-proxy may write, and name a user of the image"
        ) from error


def with_overlay(settings: NodeSettings, overlay: Overlay, pinned: set[str]) -> NodeSettings:
    """Let the agent look where the rendered configuration says, but for what the settings file names itself."""
    derived = {"url": overlay.web_url, "local_directories": overlay.local_directories}
    update = {name: value for name, value in derived.items() if name not in pinned}
    return settings.model_copy(update={"node_manager": settings.node_manager.model_copy(update=update)})


def nodemanager_environment(settings: NodeSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """Give the NodeManager's environment: ours, with the rendered directory as its configuration."""
    rendered = str(settings.hadoop.rendered_dir)
    ours = {name: value for name, value in environ.items() if name != INIT_VARIABLE}
    return {**ours, "HADOOP_CONF_DIR": rendered, "YARN_CONF_DIR": rendered}


def _settings_watcher(
    path: Path | None, settings: NodeSettings, environ: Mapping[str, str], supervisor: Supervisor, runner: AgentRunner
) -> ConfigWatcher[NodeSettings] | None:
    """Make what reads the settings file again when it changes; None without a file."""
    if path is None:
        return None

    def told(reload: Reload[NodeSettings]) -> None:
        supervisor.metrics.reload_ok.set(reload.ok)
        if not reload.ok:
            logger.error("The settings file is refused; the last good one stays", extra={"error": reload.error})
            return
        node_manager = reload.settings.node_manager.model_copy(
            update={name: getattr(supervisor.settings.node_manager, name) for name in ("url", "local_directories")}
        )
        new = reload.settings.model_copy(update={"node_manager": node_manager})
        supervisor.reload(new)
        runner.reload(new)
        set_level(new.log.level)
        changes = describe_changes(reload.previous, reload.settings, reload.changes.reloadable)
        waiting = ", ".join(reload.changes.needs_restart)
        logger.info("The settings file was read again", extra={"changed": changes, "needs_restart": waiting})

    return ConfigWatcher(
        path, schema=SCHEMA, running=settings, environ=environ, on_reload=told, sleep=SystemClock().sleep
    )


def _do_nothing() -> None:
    """Swallow a signal that has no meaning here."""


def end_with_parent() -> None:
    """Let the kernel end this process when init ends (prctl(2)), so that two never watch one NodeManager."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Run; entry point of the module."""
    end_with_parent()
    sys.exit(int(supervise(parse(sys.argv[1:]), os.environ)))


if __name__ == "__main__":
    main()
