# SPDX-License-Identifier: Apache-2.0
"""Model the process itself: leader election, server, log."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, Seconds, Section


class LeaderElectionSettings(Section):
    """Let one of several replicas write."""

    enabled: bool = Field(True, description="False only where exactly one process runs, for example in a test.")
    lease_name: str = Field("yarn-copilot", min_length=1, description="Name of the coordination.k8s.io Lease.")
    namespace: str | None = Field(
        None,
        description="Namespace of the Lease and of Events; unset: the pod's own, else koordinator-system.",
    )
    identity: str | None = Field(None, description="Holder identity; unset: host name and a random part.")
    lease_duration_seconds: int = Field(
        10, ge=3, le=120, description="A standby takes over a lease not renewed for so long, seconds."
    )
    renew_deadline_seconds: Seconds = Field(
        6.0, gt=0, le=100, description="A leader that could not renew for so long stops writing, seconds."
    )
    retry_period_seconds: Seconds = Field(
        1.0, gt=0, le=30, description="Time between two tries to take or renew, seconds."
    )


class ServerSettings(Section):
    """Say where health, metrics and the read-only API are served."""

    bind_address: str = Field("0.0.0.0", description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 picks a free one and logs it.")


class LogSettings(Section):
    """Say what is logged."""

    level: str = Field(
        "INFO",
        pattern="^(DEBUG|INFO|WARNING|ERROR)$",
        description="Smallest level logged: DEBUG, INFO, WARNING or ERROR.",
        json_schema_extra=RELOADABLE,
    )
    format: str = Field(
        "text",
        pattern="^(text|json)$",
        description="text: one sentence with keys. json: one object per line.",
    )
