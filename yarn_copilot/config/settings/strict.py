# SPDX-License-Identifier: Apache-2.0
"""Model how mode strict moves the boundary between the two sides."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, Seconds, Section


class StrictSettings(Section):
    """Say how mode strict moves the boundary between the two sides."""

    settle_seconds: Seconds = Field(
        10.0,
        ge=1,
        lt=60,
        description="After a fall of a node's batch allocatable YARN waits so long before it grows there. Choose it above the longest lag of a kube-scheduler's watch plus the longest bind: until then a pod may be bound by an allocatable that was published before. While our own watch (yarn_copilot_watch_lag_seconds) is further behind than this, YARN does not grow. Binds that take longer are what capacity.reserve has to cover.",
        json_schema_extra=RELOADABLE,
    )
    fresh_read_seconds: Seconds = Field(
        2.0,
        gt=0,
        le=30,
        description="A growth rests on a read of the node and its pods that began at most so many seconds ago.",
        json_schema_extra=RELOADABLE,
    )
    nudge_seconds: Seconds = Field(
        60.0,
        ge=5,
        le=600,
        description="A claim that koord-manager has not published after so many seconds is written again, equal, which makes it look at the Node.",
        json_schema_extra=RELOADABLE,
    )
    yarn_weight: int = Field(
        1,
        ge=0,
        le=1_000_000,
        description="YARN's share of what is free on a node while neither side alone waits for it, against kubernetes_weight.",
        json_schema_extra=RELOADABLE,
    )
    kubernetes_weight: int = Field(
        1, ge=0, le=1_000_000, description="Kubernetes' share, see yarn_weight.", json_schema_extra=RELOADABLE
    )
    kubernetes_minimum_cpu_milli: int = Field(
        1000,
        ge=0,
        description="Milli-cores that YARN leaves free on every node. Above 0, koord-manager publishes a fall of origin at once.",
        json_schema_extra=RELOADABLE,
    )
    kubernetes_minimum_cpu_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-cpu that YARN leaves free, rounded up; added to kubernetes_minimum_cpu_milli.",
        json_schema_extra=RELOADABLE,
    )
    kubernetes_minimum_memory_bytes: int = Field(
        1_073_741_824, ge=0, description="Bytes that YARN leaves free on every node.", json_schema_extra=RELOADABLE
    )
    kubernetes_minimum_memory_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-memory that YARN leaves free, rounded up; added to kubernetes_minimum_memory_bytes.",
        json_schema_extra=RELOADABLE,
    )
    yarn_minimum_cpu_milli: int = Field(
        0,
        ge=0,
        description="Milli-cores that YARN keeps on every node while pods wait, what it uses included.",
        json_schema_extra=RELOADABLE,
    )
    yarn_minimum_cpu_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-cpu that YARN keeps, rounded up; added to yarn_minimum_cpu_milli.",
        json_schema_extra=RELOADABLE,
    )
    yarn_minimum_memory_bytes: int = Field(
        0,
        ge=0,
        description="Bytes that YARN keeps on every node while pods wait, what it uses included.",
        json_schema_extra=RELOADABLE,
    )
    yarn_minimum_memory_percent: int = Field(
        0,
        ge=0,
        le=100,
        description="Percent of origin batch-memory that YARN keeps, rounded up; added to yarn_minimum_memory_bytes.",
        json_schema_extra=RELOADABLE,
    )
    yarn_quiet_seconds: Seconds = Field(
        30.0,
        ge=0,
        le=3600,
        description="Applications count as waiting until they have waited for nothing for so many seconds, so that the boundary does not swing between two containers.",
        json_schema_extra=RELOADABLE,
    )
    force_publication: bool = Field(
        False,
        description="Where koord-manager would publish a small step only after 300 s, remove its annotation node.koordinator.sh/cpu-normalization-ratio, which makes it publish at once and write the annotation back. Without that annotation on the Node it has no effect.",
        json_schema_extra=RELOADABLE,
    )
