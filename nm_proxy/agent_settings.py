# SPDX-License-Identifier: Apache-2.0
"""Model the part of the node side's configuration that concerns cgroups, containers and the two APIs.

One class per concern, strict types, unknown keys refused, each field documented with unit and reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from nm_proxy.cgroup.layout import Driver, place_by_path
from yarn_copilot.config.settings import RELOADABLE, FilePath, Seconds, Section

_MAX_BYTES: Final = (1 << 62) - 65_536


class ParentingMode(StrEnum):
    """Choose who makes the containers' cgroups."""

    ADOPT = "adopt"
    EXECUTOR = "executor"


def _checked_hierarchy(path: str) -> str:
    return place_by_path(path).yarn


class CgroupSettings(Section):
    """Say where the host's cgroup tree is."""

    root: FilePath = Field(
        "/sys/fs/cgroup",
        validate_default=True,
        description="Where the host's cgroup tree is mounted in this container; with a hostPath often /host-cgroup.",
    )
    driver: Driver | None = Field(
        None,
        strict=False,
        description="kubelet's cgroup driver, systemd or cgroupfs; unset: found out from kubelet's directories.",
    )
    hierarchy: Annotated[str, AfterValidator(_checked_hierarchy)] | None = Field(
        None,
        description="Whole path of YARN's directory, for kubelets with a cgroup root of their own; unset: hadoop-yarn below kubelet's best-effort directory. Two NodeManagers on a node need two directories.",
    )


class NodeManagerAccessSettings(Section):
    """Say how to reach the NodeManager and where it keeps its pid files."""

    url: str = Field(
        "http://127.0.0.1:8042",
        pattern="^https?://[^/?#]+/?$",
        max_length=512,
        description="Address of the NodeManager's web application (yarn.nodemanager.webapp.address).",
    )
    user: str | None = Field(
        None, max_length=256, description="Name sent as user.name with simple authentication; unset: none is sent."
    )
    local_directories: tuple[str, ...] = Field(
        ("/tmp/hadoop-yarn/nm-local-dir",),  # noqa: S108 - Hadoop's own default
        strict=False,
        min_length=1,
        description="The directories of yarn.nodemanager.local-dirs, as this container sees them.",
    )
    timeout_seconds: Seconds = Field(
        3.0, gt=0, le=60, description="Deadline of one question to the NodeManager, seconds."
    )
    poll_interval_seconds: Seconds = Field(
        2.0,
        ge=0.1,
        le=60,
        description="Time between two reads of the container list when nothing happens, seconds; a launch reads at once.",
        json_schema_extra=RELOADABLE,
    )


class ParentingSettings(Section):
    """Say how containers get into their cgroups."""

    mode: ParentingMode = Field(
        ParentingMode.ADOPT,
        strict=False,
        description="adopt: any executor, this program makes the groups. executor: LinuxContainerExecutor makes them, this program prepares and repairs the parent and completes what the executor leaves out.",
    )
    interval_seconds: Seconds = Field(
        0.8,
        ge=0.05,
        le=60,
        description="Time between two complete looks, seconds. Values that somebody rewrote are repaired by the next one, so keep it below 1.",
        json_schema_extra=RELOADABLE,
    )
    milli_cores_per_vcore: int = Field(
        1000, ge=1, le=1_000_000, description="Milli-cores of one vcore, the same as the controller's."
    )
    memory_wall_bytes: int | None = Field(
        None,
        ge=67_108_864,
        le=_MAX_BYTES,
        description="Hard memory limit of all YARN containers together, bytes; unset: none. It is set only once they use less, so that setting it kills nobody.",
        json_schema_extra=RELOADABLE,
    )
    empty_group_age_seconds: Seconds = Field(
        60.0,
        ge=5,
        le=86_400,
        description="An empty group is removed when it is older than this, seconds, and the NodeManager does not know it. A launch makes the group before it fills it.",
        json_schema_extra=RELOADABLE,
    )
    owner_uid: int | None = Field(
        None,
        ge=0,
        le=4_294_967_294,
        description="executor mode: user that may make groups below YARN's directory, where the NodeManager does not run as root.",
    )
    owner_gid: int = Field(0, ge=0, le=4_294_967_294, description="executor mode: group of that directory.")


class LingeringSettings(Section):
    """Say what happens to processes that outlive their container."""

    enabled: bool = Field(
        True,
        description="False: they are reported only, never killed.",
        json_schema_extra=RELOADABLE,
    )
    finished_delay_seconds: Seconds = Field(
        30.0,
        ge=5,
        le=86_400,
        description="The NodeManager calls a container finished, or does not know it while it answers, and processes are left: they are killed after so many seconds. The NodeManager itself needs about 2 to clean up.",
        json_schema_extra=RELOADABLE,
    )
    dead_node_manager_delay_seconds: Seconds = Field(
        900.0,
        ge=60,
        le=604_800,
        description="The NodeManager has been dead for so many seconds (its process has ended, or nobody listens any more where it has answered before): containers it left are killed. Choose more than yarn.nm.liveness-monitor.expiry-interval-ms, after which the RM has sold their room again.",
        json_schema_extra=RELOADABLE,
    )


class CopilotSettings(Section):
    """Say where containers can be listed and killed."""

    socket: FilePath | None = Field(
        "/var/run/yarn-copilot/yarn-copilot.sock",
        validate_default=True,
        description="Unix socket for koordlet or an operator on the node, owned by root, mode 0660; null: none.",
    )
    allowed_uids: tuple[int, ...] = Field(
        (0,),
        strict=False,
        description="User ids that may call over the socket, by the kernel's word (SO_PEERCRED).",
    )
    bind_address: str = Field("0.0.0.0", description="Address of the port for the controller.")
    port: int | None = Field(
        None, ge=0, le=65_535, description="Port `copilot` for the controller; null: off; 0 picks a free one."
    )
    tls_certificate: FilePath | None = Field(
        None, description="PEM file with the certificate chain of the port; unset: plain HTTP, which never kills."
    )
    tls_key: FilePath | None = Field(None, description="PEM file with its key.")
    kill_token: FilePath | None = Field(
        None,
        description="File with the bearer token that a kill over the port must carry; unset: no kill over the port. Read again when it changes.",
    )
    kill_timeout_seconds: Seconds = Field(
        10.0,
        gt=0,
        le=120,
        description="How long one kill may wait for the kernel to end processes, seconds; a caller may ask for less.",
        json_schema_extra=RELOADABLE,
    )

    @model_validator(mode="after")
    def _complete_tls(self) -> CopilotSettings:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key belong together: set both or none")
        if self.kill_token is not None and self.tls_certificate is None:
            raise ValueError("kill_token without tls_certificate: a token must not travel in the clear")
        return self


class AgentSettings(Section):
    """Hold everything that the agent part needs."""

    cgroup: CgroupSettings = CgroupSettings()
    node_manager: NodeManagerAccessSettings = NodeManagerAccessSettings()
    parenting: ParentingSettings = ParentingSettings()
    lingering: LingeringSettings = LingeringSettings()
    copilot: CopilotSettings = CopilotSettings()
