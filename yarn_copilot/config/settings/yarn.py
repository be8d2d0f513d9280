# SPDX-License-Identifier: Apache-2.0
"""Model how often YARN is looked at, and how NodeManagers behave and are found."""

from __future__ import annotations

from pydantic import Field

from yarn_copilot.config.settings.base import RELOADABLE, Seconds, Section


class YarnSettings(Section):
    """Say how often to look at YARN and how NodeManagers behave."""

    poll_interval_seconds: Seconds = Field(
        1.0,
        ge=0.05,
        le=60,
        description="Time between two reads of a cluster's node list, seconds.",
        json_schema_extra=RELOADABLE,
    )
    confirm_interval_seconds: Seconds = Field(
        0.2,
        ge=0.05,
        le=10,
        description="Time between two reads while an update is not confirmed yet, seconds.",
        json_schema_extra=RELOADABLE,
    )
    heartbeat_interval_seconds: Seconds | None = Field(
        None,
        gt=0,
        le=60,
        description="NodeManager heartbeat interval, seconds. Unset: yarn.resourcemanager.nodemanagers.heartbeat-interval-ms of the cluster's yarn-site.xml, else 1. A fall of use counts only when seen twice with a heartbeat between.",
        json_schema_extra=RELOADABLE,
    )
    queue_interval_seconds: Seconds = Field(
        2.0,
        ge=1,
        le=600,
        description="Time between two reads of the queues, seconds; so late mode strict sees that applications wait.",
        json_schema_extra=RELOADABLE,
    )
    message_lifetime_seconds: Seconds = Field(
        10.0,
        gt=0,
        le=600,
        description="After so many seconds an update that was sent and never confirmed counts as dead: the call's deadline (hadoop.call_timeout_seconds), plus what it may wait in the ResourceManager's queue, plus what the network may keep it. In mode strict a new leader sends nothing before so much time in office, so a longer lifetime also means a slower take-over.",
        json_schema_extra=RELOADABLE,
    )
    lost_hold_seconds: Seconds = Field(
        600.0,
        ge=1,
        le=86400,
        description="A NodeManager that is LOST or gone from the node list is believed to hold its last use for so many seconds. Choose at least the RM's yarn.nm.liveness-monitor.expiry-interval-ms.",
        json_schema_extra=RELOADABLE,
    )
    unrecognized_backoff_max_seconds: Seconds = Field(
        60.0,
        ge=1,
        le=3600,
        description="Longest wait before a node that the RM does not know is tried again, seconds; starts at 1 and doubles.",
        json_schema_extra=RELOADABLE,
    )
    floor_memory_mib: int = Field(
        1024,
        ge=0,
        le=2_147_483_647,
        description="Memory a NodeManager registers with, MiB: at least the RM's yarn.scheduler.minimum-allocation-mb. Capacity never goes below.",
        json_schema_extra=RELOADABLE,
    )
    floor_vcores: int = Field(
        1,
        ge=0,
        le=2_147_483_647,
        description="vcores a NodeManager registers with: at least yarn.scheduler.minimum-allocation-vcores.",
        json_schema_extra=RELOADABLE,
    )


class NodeManagerSettings(Section):
    """Say how to find NodeManagers in Kubernetes."""

    pod_selector: str = Field(
        "app.kubernetes.io/component=node-manager",
        min_length=1,
        description="Label selector (equality form, comma separated) of NodeManager pods.",
    )
    host_node_selector: str | None = Field(
        None, description="Label selector of Nodes whose NodeManager runs as a host daemon; unset: none."
    )
    default_cluster: str | None = Field(
        None,
        description="Cluster id of NodeManagers without the annotation yarn.hadoop.apache.org/cluster-id; unset: the only cluster, or the one of the un-prefixed yarn-site.xml.",
    )
    count_node_manager_pod: bool = Field(
        True,
        description="Count the NodeManager pod's own batch request as Kubernetes use. False only where that request is meant to hold the tasks.",
        json_schema_extra=RELOADABLE,
    )
    drain_cordoned_nodes: bool = Field(
        False,
        description="Treat a cordoned Node (spec.unschedulable) like one with a drain order: YARN's capacity goes to the floor until it is uncordoned. False: a cordon concerns kube-scheduler alone.",
        json_schema_extra=RELOADABLE,
    )
    cluster_weights: dict[str, int] = Field(
        {},
        description="Weight of each cluster on a node that carries several; 1 where absent.",
        json_schema_extra=RELOADABLE,
    )
