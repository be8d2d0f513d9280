# SPDX-License-Identifier: Apache-2.0
"""Define what the ResourceManager says and is told, free of protobuf.

Source: Hadoop yarn_protos.proto (NodeReportProto, ResourceProto, QueueInfoProto, YarnClusterMetricsProto) and
yarn_server_resourcemanager_service_protos.proto (ResourceOptionProto). Memory is in MiB wherever Hadoop says "MB".
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct

FAR_OVERCOMMIT_TIMEOUT_MILLIS: Final = 2_147_483_647
"""The largest int32: a deadline 24.8 days away.

It replaces whatever deadline somebody armed on the node before, which a negative value would not
(SchedulerNode.setOvercommitTimeOut ignores it), and kills nothing.
"""


class NodeId(Struct, frozen=True, order=True):
    """Name a NodeManager as the RM does: host text (case kept, never resolved) and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> NodeId:
        """Read `host:port`; an IPv6 literal keeps its colons, the last one separates the port.

        Raises:
            ValueError: the text has no port, an empty host, or a port outside 1..65535.
        """
        host, separator, port_text = text.strip().rpartition(":")
        if not separator or not host or not port_text.isascii() or not port_text.isdigit():
            raise ValueError(f"node id {text[:256]!r} is not host:port")
        port = int(port_text)
        if not 1 <= port <= 65535:
            raise ValueError(f"node id {text[:256]!r} has port {port}, allowed are 1 to 65535")
        return cls(host, port)


class NodeState(IntEnum):
    """Give NodeStateProto its names."""

    NEW = 1
    RUNNING = 2
    UNHEALTHY = 3
    DECOMMISSIONED = 4
    LOST = 5
    REBOOTED = 6
    DECOMMISSIONING = 7
    SHUTDOWN = 8

    @property
    def is_active(self) -> bool:
        """Tell whether the RM knows the node in its active map, so that an update naming it is accepted."""
        return self in (NodeState.NEW, NodeState.RUNNING, NodeState.UNHEALTHY, NodeState.DECOMMISSIONING)


class ResourceInformation(Struct, frozen=True):
    """Hold one custom resource type, for example yarn.io/gpu; memory-mb and vcores never appear here."""

    name: str
    value: int
    units: str = ""


class Resource(Struct, frozen=True):
    """Hold a YARN resource vector."""

    memory_mib: int
    vcores: int
    custom: tuple[ResourceInformation, ...] = ()


class NodeReport(Struct, frozen=True, gc=False):
    """Hold one node of `getClusterNodes`.

    `capability` comes from RMNode and changes first, `used` from the scheduler; right after an update `used`
    can be zero for up to 60 ms while every container still runs.
    """

    node_id: NodeId
    state: NodeState
    http_address: str
    rack: str
    capability: Resource
    used: Resource
    containers: int
    last_health_report_millis: int
    labels: tuple[str, ...] = ()


class SchedulerReading(Struct, frozen=True):
    """Hold one node as the ResourceManager's scheduler has it, beside the node list.

    Attributes:
        total: used plus available; the node list can show a new total before the scheduler works with it.
        used: handed out.
        heartbeat: a text that changes only by a heartbeat of the NodeManager.
        incarnation: a text that is another one for another ResourceManager, or the same after a restart.
    """

    total: Resource
    used: Resource
    heartbeat: str
    incarnation: str


class NodeResourceUpdate(Struct, frozen=True):
    """Ask for a node's total to become `resource`; the timeout is always explicit, in milliseconds."""

    node_id: NodeId
    resource: Resource
    overcommit_timeout_millis: int = FAR_OVERCOMMIT_TIMEOUT_MILLIS


class QueueInfo(Struct, frozen=True):
    """Hold one queue of `getQueueInfo`; fractions are 0..1 of the parent, as the scheduler reports them."""

    name: str
    path: str
    state: str
    capacity: float
    maximum_capacity: float
    current_capacity: float
    allocated: Resource
    pending: Resource
    reserved: Resource
    allocated_containers: int
    pending_containers: int
    children: tuple[QueueInfo, ...] = ()
    applications_running: int = 0
    applications_pending: int = 0


class ClusterMetrics(Struct, frozen=True):
    """Hold node counts of `getClusterMetrics`."""

    node_managers: int
    active: int
    lost: int
    unhealthy: int
    decommissioned: int
    rebooted: int
    decommissioning: int
    shutdown: int


class HAServiceState(IntEnum):
    """Give HAServiceStateProto its names; UNKNOWN is a state that a later Hadoop adds."""

    UNKNOWN = -1
    INITIALIZING = 0
    ACTIVE = 1
    STANDBY = 2
    OBSERVER = 3


class ServiceStatus(Struct, frozen=True):
    """Hold what one ResourceManager of a pair says about itself."""

    state: HAServiceState
    is_ready_to_become_active: bool
    not_ready_reason: str = ""


class ApplicationState(IntEnum):
    """Give YarnApplicationStateProto its names; UNKNOWN is a state that a later Hadoop adds."""

    UNKNOWN = -1
    NEW = 1
    NEW_SAVING = 2
    SUBMITTED = 3
    ACCEPTED = 4
    RUNNING = 5
    FINISHED = 6
    FAILED = 7
    KILLED = 8

    @property
    def is_final(self) -> bool:
        """Tell whether the application has ended."""
        return self in (ApplicationState.FINISHED, ApplicationState.FAILED, ApplicationState.KILLED)


class ApplicationReport(Struct, frozen=True):
    """Hold one application of `getApplications`; times in Unix milliseconds, `finish_millis` 0 until it ends.

    `containers` and `used` are 0 where the caller may not see the application.
    """

    id: str
    name: str
    user: str
    queue: str
    type: str
    state: ApplicationState
    progress: float
    start_millis: int
    finish_millis: int
    containers: int
    used: Resource
    reserved: Resource


class DecommissionType(IntEnum):
    """Give DecommissionTypeProto its names."""

    NORMAL = 1
    GRACEFUL = 2
    FORCEFUL = 3


class AttributeOperation(IntEnum):
    """Give AttributeMappingOperationTypeProto its names."""

    REPLACE = 1
    ADD = 2
    REMOVE = 3


class NodeAttribute(Struct, frozen=True):
    """Hold one attribute of a host; rm.yarn.io is the prefix of those that administrators set."""

    name: str
    value: str
    prefix: str = "rm.yarn.io"
