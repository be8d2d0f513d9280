from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NS_NEW: _ClassVar[NodeState]
    NS_RUNNING: _ClassVar[NodeState]
    NS_UNHEALTHY: _ClassVar[NodeState]
    NS_DECOMMISSIONED: _ClassVar[NodeState]
    NS_LOST: _ClassVar[NodeState]
    NS_REBOOTED: _ClassVar[NodeState]
    NS_DECOMMISSIONING: _ClassVar[NodeState]
    NS_SHUTDOWN: _ClassVar[NodeState]

class QueueState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    Q_STOPPED: _ClassVar[QueueState]
    Q_RUNNING: _ClassVar[QueueState]
    Q_DRAINING: _ClassVar[QueueState]
NS_NEW: NodeState
NS_RUNNING: NodeState
NS_UNHEALTHY: NodeState
NS_DECOMMISSIONED: NodeState
NS_LOST: NodeState
NS_REBOOTED: NodeState
NS_DECOMMISSIONING: NodeState
NS_SHUTDOWN: NodeState
Q_STOPPED: QueueState
Q_RUNNING: QueueState
Q_DRAINING: QueueState

class ResourceInformation(_message.Message):
    __slots__ = ("key", "value", "units")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: int
    units: str
    def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ..., units: _Optional[str] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("memory_mib", "virtual_cores", "resource_value_map")
    MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_CORES_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_VALUE_MAP_FIELD_NUMBER: _ClassVar[int]
    memory_mib: int
    virtual_cores: int
    resource_value_map: _containers.RepeatedCompositeFieldContainer[ResourceInformation]
    def __init__(self, memory_mib: _Optional[int] = ..., virtual_cores: _Optional[int] = ..., resource_value_map: _Optional[_Iterable[_Union[ResourceInformation, _Mapping]]] = ...) -> None: ...

class NodeId(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class NodeReport(_message.Message):
    __slots__ = ("node_id", "http_address", "rack_name", "used", "capability", "containers", "node_state", "health_report", "last_health_report_millis", "node_labels")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RACK_NAME_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    NODE_STATE_FIELD_NUMBER: _ClassVar[int]
    HEALTH_REPORT_FIELD_NUMBER: _ClassVar[int]
    LAST_HEALTH_REPORT_MILLIS_FIELD_NUMBER: _ClassVar[int]
    NODE_LABELS_FIELD_NUMBER: _ClassVar[int]
    node_id: NodeId
    http_address: str
    rack_name: str
    used: Resource
    capability: Resource
    containers: int
    node_state: NodeState
    health_report: str
    last_health_report_millis: int
    node_labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node_id: _Optional[_Union[NodeId, _Mapping]] = ..., http_address: _Optional[str] = ..., rack_name: _Optional[str] = ..., used: _Optional[_Union[Resource, _Mapping]] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ..., containers: _Optional[int] = ..., node_state: _Optional[_Union[NodeState, str]] = ..., health_report: _Optional[str] = ..., last_health_report_millis: _Optional[int] = ..., node_labels: _Optional[_Iterable[str]] = ...) -> None: ...

class NodeReportParts(_message.Message):
    __slots__ = ("encoded_node_id", "http_address", "rack_name", "encoded_used", "encoded_capability", "containers", "node_state", "last_health_report_millis", "node_labels")
    ENCODED_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    RACK_NAME_FIELD_NUMBER: _ClassVar[int]
    ENCODED_USED_FIELD_NUMBER: _ClassVar[int]
    ENCODED_CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    NODE_STATE_FIELD_NUMBER: _ClassVar[int]
    LAST_HEALTH_REPORT_MILLIS_FIELD_NUMBER: _ClassVar[int]
    NODE_LABELS_FIELD_NUMBER: _ClassVar[int]
    encoded_node_id: bytes
    http_address: str
    rack_name: str
    encoded_used: bytes
    encoded_capability: bytes
    containers: int
    node_state: NodeState
    last_health_report_millis: int
    node_labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, encoded_node_id: _Optional[bytes] = ..., http_address: _Optional[str] = ..., rack_name: _Optional[str] = ..., encoded_used: _Optional[bytes] = ..., encoded_capability: _Optional[bytes] = ..., containers: _Optional[int] = ..., node_state: _Optional[_Union[NodeState, str]] = ..., last_health_report_millis: _Optional[int] = ..., node_labels: _Optional[_Iterable[str]] = ...) -> None: ...

class GetClusterNodesRequest(_message.Message):
    __slots__ = ("node_states",)
    NODE_STATES_FIELD_NUMBER: _ClassVar[int]
    node_states: _containers.RepeatedScalarFieldContainer[NodeState]
    def __init__(self, node_states: _Optional[_Iterable[_Union[NodeState, str]]] = ...) -> None: ...

class GetClusterNodesResponse(_message.Message):
    __slots__ = ("encoded_node_reports",)
    ENCODED_NODE_REPORTS_FIELD_NUMBER: _ClassVar[int]
    encoded_node_reports: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, encoded_node_reports: _Optional[_Iterable[bytes]] = ...) -> None: ...

class QueueStatistics(_message.Message):
    __slots__ = ("applications_submitted", "applications_running", "applications_pending", "available_memory_mib", "allocated_memory_mib", "pending_memory_mib", "reserved_memory_mib", "available_vcores", "allocated_vcores", "pending_vcores", "reserved_vcores", "allocated_containers", "pending_containers", "reserved_containers")
    APPLICATIONS_SUBMITTED_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_PENDING_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    PENDING_MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    RESERVED_MEMORY_MIB_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_VCORES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_VCORES_FIELD_NUMBER: _ClassVar[int]
    PENDING_VCORES_FIELD_NUMBER: _ClassVar[int]
    RESERVED_VCORES_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    PENDING_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    applications_submitted: int
    applications_running: int
    applications_pending: int
    available_memory_mib: int
    allocated_memory_mib: int
    pending_memory_mib: int
    reserved_memory_mib: int
    available_vcores: int
    allocated_vcores: int
    pending_vcores: int
    reserved_vcores: int
    allocated_containers: int
    pending_containers: int
    reserved_containers: int
    def __init__(self, applications_submitted: _Optional[int] = ..., applications_running: _Optional[int] = ..., applications_pending: _Optional[int] = ..., available_memory_mib: _Optional[int] = ..., allocated_memory_mib: _Optional[int] = ..., pending_memory_mib: _Optional[int] = ..., reserved_memory_mib: _Optional[int] = ..., available_vcores: _Optional[int] = ..., allocated_vcores: _Optional[int] = ..., pending_vcores: _Optional[int] = ..., reserved_vcores: _Optional[int] = ..., allocated_containers: _Optional[int] = ..., pending_containers: _Optional[int] = ..., reserved_containers: _Optional[int] = ...) -> None: ...

class QueueInfo(_message.Message):
    __slots__ = ("queue_name", "capacity", "maximum_capacity", "current_capacity", "state", "child_queues", "queue_statistics", "queue_path")
    QUEUE_NAME_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    CURRENT_CAPACITY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CHILD_QUEUES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_STATISTICS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_PATH_FIELD_NUMBER: _ClassVar[int]
    queue_name: str
    capacity: float
    maximum_capacity: float
    current_capacity: float
    state: QueueState
    child_queues: _containers.RepeatedCompositeFieldContainer[QueueInfo]
    queue_statistics: QueueStatistics
    queue_path: str
    def __init__(self, queue_name: _Optional[str] = ..., capacity: _Optional[float] = ..., maximum_capacity: _Optional[float] = ..., current_capacity: _Optional[float] = ..., state: _Optional[_Union[QueueState, str]] = ..., child_queues: _Optional[_Iterable[_Union[QueueInfo, _Mapping]]] = ..., queue_statistics: _Optional[_Union[QueueStatistics, _Mapping]] = ..., queue_path: _Optional[str] = ...) -> None: ...

class GetQueueInfoRequest(_message.Message):
    __slots__ = ("queue_name", "include_applications", "include_child_queues", "recursive")
    QUEUE_NAME_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_CHILD_QUEUES_FIELD_NUMBER: _ClassVar[int]
    RECURSIVE_FIELD_NUMBER: _ClassVar[int]
    queue_name: str
    include_applications: bool
    include_child_queues: bool
    recursive: bool
    def __init__(self, queue_name: _Optional[str] = ..., include_applications: _Optional[bool] = ..., include_child_queues: _Optional[bool] = ..., recursive: _Optional[bool] = ...) -> None: ...

class GetQueueInfoResponse(_message.Message):
    __slots__ = ("queue_info",)
    QUEUE_INFO_FIELD_NUMBER: _ClassVar[int]
    queue_info: QueueInfo
    def __init__(self, queue_info: _Optional[_Union[QueueInfo, _Mapping]] = ...) -> None: ...

class YarnClusterMetrics(_message.Message):
    __slots__ = ("node_managers", "decommissioned", "active", "lost", "unhealthy", "rebooted", "decommissioning", "shutdown")
    NODE_MANAGERS_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSIONED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    UNHEALTHY_FIELD_NUMBER: _ClassVar[int]
    REBOOTED_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSIONING_FIELD_NUMBER: _ClassVar[int]
    SHUTDOWN_FIELD_NUMBER: _ClassVar[int]
    node_managers: int
    decommissioned: int
    active: int
    lost: int
    unhealthy: int
    rebooted: int
    decommissioning: int
    shutdown: int
    def __init__(self, node_managers: _Optional[int] = ..., decommissioned: _Optional[int] = ..., active: _Optional[int] = ..., lost: _Optional[int] = ..., unhealthy: _Optional[int] = ..., rebooted: _Optional[int] = ..., decommissioning: _Optional[int] = ..., shutdown: _Optional[int] = ...) -> None: ...

class GetClusterMetricsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetClusterMetricsResponse(_message.Message):
    __slots__ = ("cluster_metrics",)
    CLUSTER_METRICS_FIELD_NUMBER: _ClassVar[int]
    cluster_metrics: YarnClusterMetrics
    def __init__(self, cluster_metrics: _Optional[_Union[YarnClusterMetrics, _Mapping]] = ...) -> None: ...

class ResourceOption(_message.Message):
    __slots__ = ("resource", "over_commit_timeout")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OVER_COMMIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    over_commit_timeout: int
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., over_commit_timeout: _Optional[int] = ...) -> None: ...

class NodeResourceMap(_message.Message):
    __slots__ = ("node_id", "resource_option")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_OPTION_FIELD_NUMBER: _ClassVar[int]
    node_id: NodeId
    resource_option: ResourceOption
    def __init__(self, node_id: _Optional[_Union[NodeId, _Mapping]] = ..., resource_option: _Optional[_Union[ResourceOption, _Mapping]] = ...) -> None: ...

class UpdateNodeResourceRequest(_message.Message):
    __slots__ = ("node_resource_map",)
    NODE_RESOURCE_MAP_FIELD_NUMBER: _ClassVar[int]
    node_resource_map: _containers.RepeatedCompositeFieldContainer[NodeResourceMap]
    def __init__(self, node_resource_map: _Optional[_Iterable[_Union[NodeResourceMap, _Mapping]]] = ...) -> None: ...

class UpdateNodeResourceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
