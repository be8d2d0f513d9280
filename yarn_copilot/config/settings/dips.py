# SPDX-License-Identifier: Apache-2.0
"""Model for how long a dip of origin, or its end, is not believed."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, Seconds, Section


class DipSettings(Section):
    """Say for how long a dip of origin, or its end, is not believed; meanwhile capacity is at use and the claim stays."""

    zero_hold_seconds: Seconds = Field(
        15.0,
        ge=0,
        le=600,
        description="An origin of 0 counts as unknown until it has lasted for so many seconds: a restart of kubelet or koordlet can spoil one report. Then it is a fall like any other.",
        json_schema_extra=RELOADABLE,
    )
    degraded_recovery_seconds: Seconds | None = Field(
        None,
        ge=0,
        le=3600,
        description="After Koordinator had withdrawn its figures (no report of koordlet), they count again once they have been there for so many seconds. Unset: capacity.growth_window_seconds.",
        json_schema_extra=RELOADABLE,
    )
    absent_recovery_seconds: Seconds | None = Field(
        None,
        ge=0,
        le=3600,
        description="The same after the annotation with origin was absent. Unset: capacity.growth_window_seconds.",
        json_schema_extra=RELOADABLE,
    )
    malformed_recovery_seconds: Seconds | None = Field(
        0.0,
        ge=0,
        le=3600,
        description="The same after the annotation was malformed. 0, since mending a text makes Koordinator's figure neither older nor younger. Unset: capacity.growth_window_seconds.",
        json_schema_extra=RELOADABLE,
    )
