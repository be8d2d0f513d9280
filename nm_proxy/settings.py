# SPDX-License-Identifier: Apache-2.0
"""Model the whole configuration file of the node side; see `agent_settings` for the sections of the agent.

The file is YAML, normally a ConfigMap, read by the same rules as the controller's. A variable
`NM_PROXY_<SECTION>__<KEY>` overrides a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import Field

from nm_proxy.agent_settings import AgentSettings
from yarn_copilot.config.loading import Schema
from yarn_copilot.config.rules import Problem
from yarn_copilot.config.settings import RELOADABLE, FilePath, LogSettings, Seconds, Section

ENVIRONMENT_PREFIX: Final = "NM_PROXY_"


class HadoopSettings(Section):
    """Say where the operator's Hadoop configuration is and where the rendered one goes."""

    conf_dir: FilePath = Field(
        Path("/etc/hadoop/conf"),
        description="The operator's Hadoop configuration directory, normally a mounted ConfigMap. It is only read.",
    )
    cluster: str = Field(
        "default",
        min_length=1,
        max_length=253,
        description="Which cluster this NodeManager belongs to: <cluster>.yarn-site.xml in conf_dir; default is a plain yarn-site.xml.",
    )
    rendered_dir: FilePath = Field(
        Path("/run/nm-proxy/hadoop-conf"),
        description="Directory that is written before each start of the NodeManager and named to it by HADOOP_CONF_DIR and YARN_CONF_DIR.",
    )
    version: str | None = Field(
        None,
        pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$",
        description="Hadoop version of the NodeManager; unset: found out from the names of its jars.",
    )
    user: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="User that the NodeManager runs as; unset: the user of nm-proxy, which is root.",
    )


class IdentitySettings(Section):
    """Say how the ResourceManager and applications find this NodeManager."""

    host_name: str | None = Field(
        None,
        min_length=1,
        max_length=253,
        description="Host name or address in the node id; unset: the one of yarn.nodemanager.address where it names a host, else this machine's full host name.",
    )
    port: int | None = Field(
        None,
        ge=1,
        le=65_535,
        description="Port in the node id; unset: the one of yarn.nodemanager.address where it is fixed, else 8041.",
    )


class CapacitySettings(Section):
    """Say what the NodeManager registers with, before the controller gives it more."""

    memory_mib: int | None = Field(
        None,
        ge=1,
        le=2_147_483_647,
        description="MiB at registration; unset: yarn.scheduler.minimum-allocation-mb of the mounted configuration. Less is refused by the ResourceManager.",
    )
    vcores: int | None = Field(
        None,
        ge=1,
        le=2_147_483_647,
        description="vcores at registration; unset: yarn.scheduler.minimum-allocation-vcores.",
    )


class RecoverySettings(Section):
    """Say whether containers outlive their NodeManager."""

    enabled: bool = Field(
        True,
        description="True: a NodeManager that ended unexpectedly finds its containers again when it is started anew.",
    )
    directory: FilePath | None = Field(
        None,
        description="Where the NodeManager keeps what it needs for that; on a volume. Unset: yarn.nodemanager.recovery.dir of the mounted configuration, else /var/lib/nm-proxy/recovery.",
    )
    keep_on_stop: bool = Field(
        False,
        description="True: a stop leaves containers alone for the next NodeManager (yarn.nodemanager.recovery.supervised) instead of draining. Only with hostPID, because they end with PID 1 of their namespace.",
    )


class SupervisorSettings(Section):
    """Say how the NodeManager is watched."""

    state_dir: FilePath = Field(
        Path("/run/nm-proxy"),
        description="Where a restarted supervisor finds out which NodeManager runs. Not to be shared by two pods.",
    )
    restart_min_seconds: Seconds = Field(
        1.0,
        ge=0.1,
        le=600,
        description="Wait before the first restart of a NodeManager that ended, seconds; each further one waits twice as long.",
        json_schema_extra=RELOADABLE,
    )
    restart_max_seconds: Seconds = Field(
        60.0, ge=0.1, le=3600, description="Longest wait before a restart, seconds.", json_schema_extra=RELOADABLE
    )
    stable_seconds: Seconds = Field(
        120.0,
        ge=1,
        le=86_400,
        description="A NodeManager that ran for so many seconds is stable: its next restart waits the shortest time again.",
        json_schema_extra=RELOADABLE,
    )


class StopSettings(Section):
    """Say how a stop (SIGTERM, SIGINT) goes."""

    grace_seconds: Seconds = Field(
        30.0,
        ge=5,
        le=604_800,
        description="Time for everything between SIGTERM and the end, seconds; the same as the pod's terminationGracePeriodSeconds, after which kubelet kills.",
        json_schema_extra=RELOADABLE,
    )
    node_manager_seconds: Seconds = Field(
        10.0,
        ge=1,
        le=600,
        description="Part of it that is kept for stopping the NodeManager, seconds; the rest is spent waiting for containers.",
        json_schema_extra=RELOADABLE,
    )
    container_kill_millis: int = Field(
        250,
        ge=0,
        le=600_000,
        description="Time that the NodeManager gives one container between SIGTERM and SIGKILL, milliseconds (yarn.nodemanager.sleep-delay-before-sigkill.ms).",
    )


class HealthSettings(Section):
    """Say where /healthz, /readyz and /metrics are served."""

    bind_address: str = Field("0.0.0.0", description="Address to listen on.")
    port: int | None = Field(8049, ge=0, le=65_535, description="Port; null: none; 0 picks a free one.")
    start_failures: int = Field(
        5,
        ge=1,
        le=1000,
        description="/healthz fails after so many starts in a row that did not get stable, and only while no container runs, so that a liveness probe never costs one.",
        json_schema_extra=RELOADABLE,
    )


class NodeSettings(AgentSettings):
    """Be the whole file."""

    hadoop: HadoopSettings = HadoopSettings()
    identity: IdentitySettings = IdentitySettings()
    capacity: CapacitySettings = CapacitySettings()
    recovery: RecoverySettings = RecoverySettings()
    supervisor: SupervisorSettings = SupervisorSettings()
    stop: StopSettings = StopSettings()
    health: HealthSettings = HealthSettings()
    log: LogSettings = LogSettings()


RULE_SENTENCES: Final = (
    "`stop.node_manager_seconds` is below `stop.grace_seconds`.",
    "`supervisor.restart_min_seconds` is at most `supervisor.restart_max_seconds`.",
    "`recovery.keep_on_stop` needs `recovery.enabled`.",
    "`copilot.tls_certificate` and `copilot.tls_key` are set together, and `copilot.kill_token` only with them.",
)
"""Say the rules across keys for the reference page."""


def broken_rules(settings: NodeSettings) -> list[Problem]:
    """List every rule across keys that does not hold."""
    return list(_broken(settings))


def _broken(settings: NodeSettings) -> Iterator[Problem]:
    stop, supervisor, recovery = settings.stop, settings.supervisor, settings.recovery
    if stop.node_manager_seconds >= stop.grace_seconds:
        yield Problem(
            "stop.node_manager_seconds",
            f"is {stop.node_manager_seconds:g} but must be below stop.grace_seconds ({stop.grace_seconds:g}), "
            "of which it is a part",
        )
    if supervisor.restart_min_seconds > supervisor.restart_max_seconds:
        yield Problem(
            "supervisor.restart_min_seconds",
            f"is {supervisor.restart_min_seconds:g} but must be at most restart_max_seconds "
            f"({supervisor.restart_max_seconds:g})",
        )
    if recovery.keep_on_stop and not recovery.enabled:
        yield Problem("recovery.keep_on_stop", "is true but recovery.enabled is false, so nobody would find them again")


SCHEMA: Final = Schema(NodeSettings, ENVIRONMENT_PREFIX, broken_rules)
"""Read with `yarn_copilot.config.loading.parse_as`."""
