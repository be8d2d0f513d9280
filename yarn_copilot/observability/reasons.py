# SPDX-License-Identifier: Apache-2.0
"""List every reason that appears in Events, API answers and logs, once."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Give each state worth telling its CamelCase name; the value is what Kubernetes Events carry."""

    ORIGIN_MALFORMED = "OriginMalformed"
    ORIGIN_DEGRADED = "OriginDegraded"
    ORIGIN_ABSENT = "OriginAbsent"
    ORIGIN_STALE = "OriginStale"
    ORIGIN_RECOVERED = "OriginRecovered"
    THIRD_PARTY_MALFORMED = "ThirdPartyAllocationsMalformed"
    FOREIGN_WRITER = "ForeignWriterOfOurEntry"
    POD_REQUEST_MALFORMED = "PodRequestMalformed"
    NODE_MANAGER_UNKNOWN = "NodeManagerUnknownToResourceManager"
    NODE_MANAGER_NOT_WRITABLE = "NodeManagerNotWritable"
    NODE_MANAGER_UNMATCHED = "NodeManagerNotMatched"
    NODE_MANAGER_NOT_RUNNING = "NodeManagerNotRunning"
    NODE_LABEL_REFUSED = "NodeLabelRefused"
    CLAIM_REFUSED = "ClaimRefused"
    CLUSTER_UNKNOWN = "YarnClusterUnknown"
    FLOOR_OVERCOMMIT = "FloorExceedsOrigin"
    ORDER_MALFORMED = "OrderMalformed"
    PAUSED = "Paused"
    DRAINING = "Draining"
    DRAIN_OVERDUE = "DrainOverdue"
    DRAINED = "Drained"
    RELEASED = "Released"
    FIX_EXCEEDS_BUDGET = "FixExceedsOrigin"
    YARN_OVER_ORIGIN = "YarnOverOrigin"
    PREEMPTION_DEADLINE = "PreemptionDeadlineSet"
    PREEMPTION_ENDED = "PreemptionEnded"
    TASKS_KILLED = "TasksKilledOnNode"
    TASKS_NOT_KILLED = "TasksNotKilledOnNode"
    NODE_AGENT_SILENT = "NodeAgentSilent"
    RESOURCE_MANAGER_UNREACHABLE = "ResourceManagerUnreachable"
    RESOURCE_MANAGER_REACHABLE = "ResourceManagerReachable"
    WATCH_LAG = "WatchLagExceedsSettleTime"
    NODE_METRIC_UNAVAILABLE = "NodeMetricUnavailable"
    CONFIGURATION_RELOADED = "ConfigurationReloaded"
    CONFIGURATION_REJECTED = "ConfigurationRejected"
    CONFIGURATION_NEEDS_RESTART = "ConfigurationNeedsRestart"
    BECAME_LEADER = "BecameLeader"
    LOST_LEADERSHIP = "LostLeadership"
