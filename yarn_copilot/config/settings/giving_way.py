# SPDX-License-Identifier: Apache-2.0
"""Model giving way: when what YARN uses beyond its part may be killed."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, Seconds, Section


class GivingWaySettings(Section):
    """Say in which stages YARN gives back what it uses beyond its part."""

    graded: bool = Field(
        True,
        description="After the grace, let the ResourceManager warn ApplicationMasters and then kill containers, youngest first and ApplicationMasters last. False: only wait for containers to end.",
        json_schema_extra=RELOADABLE,
    )
    grace_seconds: Seconds = Field(
        120.0,
        ge=1,
        le=86400,
        description="A node has to be over origin (O < K + P + Y) for so many seconds without a break before anything is killed; above the time in which koordlet or the kubelet restart, so that a momentary zero kills nothing.",
        json_schema_extra=RELOADABLE,
    )
    preemption_timeout_seconds: Seconds = Field(
        30.0,
        ge=1,
        le=86400,
        description="Seconds from the warning to the ApplicationMasters until the ResourceManager kills. Never 0, which would kill without a warning.",
        json_schema_extra=RELOADABLE,
    )
    forced: bool = Field(
        False,
        description="When the ResourceManager has not acted in time, let the agent beside the NodeManager kill tasks in the same order. Needs node_agents.tls and node_agents.token_file.",
        json_schema_extra=RELOADABLE,
    )
    forced_after_seconds: Seconds = Field(
        15.0,
        ge=1,
        le=3600,
        description="Seconds after its deadline in which the ResourceManager may still act before the agent is asked: some NodeManager heartbeats and one reading.",
        json_schema_extra=RELOADABLE,
    )
    forced_deadline_seconds: Seconds = Field(
        10.0,
        ge=1,
        le=60,
        description="Seconds that the agent has to choose, kill and verify.",
        json_schema_extra=RELOADABLE,
    )
