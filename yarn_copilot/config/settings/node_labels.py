# SPDX-License-Identifier: Apache-2.0
"""Model which labels of Kubernetes Nodes YARN is told about."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, Seconds, Section


class NodeLabelSettings(Section):
    """Map labels of Kubernetes Nodes to partitions and node attributes of YARN."""

    partition_label: str | None = Field(
        None,
        description="Label key whose value names the YARN partition (node label) of a Node's NodeManagers; a Node without it is in the default partition. The partitions must exist in the cluster, with yarn.node-labels.enabled and centralized configuration. Unset: partitions are left alone.",
    )
    attributes: dict[str, str] = Field(
        {},
        description="Names of YARN node attributes (prefix rm.yarn.io) by label key; a Node without the label has no such attribute. Other attributes are left alone.",
    )
    interval_seconds: Seconds = Field(
        10.0,
        ge=0.5,
        le=3600,
        description="Time between two looks at a cluster's partitions and attributes, seconds.",
        json_schema_extra=RELOADABLE,
    )
