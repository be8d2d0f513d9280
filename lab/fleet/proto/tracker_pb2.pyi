from yarn_copilot.hadoop.proto import yarn_pb2 as _yarn_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NORMAL: _ClassVar[NodeAction]
    RESYNC: _ClassVar[NodeAction]
    SHUTDOWN: _ClassVar[NodeAction]
NORMAL: NodeAction
RESYNC: NodeAction
SHUTDOWN: NodeAction

class MasterKey(_message.Message):
    __slots__ = ("key_id", "key_bytes")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    key_id: int
    key_bytes: bytes
    def __init__(self, key_id: _Optional[int] = ..., key_bytes: _Optional[bytes] = ...) -> None: ...

class NodeHealthStatus(_message.Message):
    __slots__ = ("is_node_healthy", "health_report", "last_health_report_millis")
    IS_NODE_HEALTHY_FIELD_NUMBER: _ClassVar[int]
    HEALTH_REPORT_FIELD_NUMBER: _ClassVar[int]
    LAST_HEALTH_REPORT_MILLIS_FIELD_NUMBER: _ClassVar[int]
    is_node_healthy: bool
    health_report: str
    last_health_report_millis: int
    def __init__(self, is_node_healthy: _Optional[bool] = ..., health_report: _Optional[str] = ..., last_health_report_millis: _Optional[int] = ...) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("node_id", "response_id", "node_health_status")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_HEALTH_STATUS_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_pb2.NodeId
    response_id: int
    node_health_status: NodeHealthStatus
    def __init__(self, node_id: _Optional[_Union[_yarn_pb2.NodeId, _Mapping]] = ..., response_id: _Optional[int] = ..., node_health_status: _Optional[_Union[NodeHealthStatus, _Mapping]] = ...) -> None: ...

class ApplicationId(_message.Message):
    __slots__ = ("id", "cluster_timestamp")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    id: int
    cluster_timestamp: int
    def __init__(self, id: _Optional[int] = ..., cluster_timestamp: _Optional[int] = ...) -> None: ...

class RegisterNodeManagerRequest(_message.Message):
    __slots__ = ("node_id", "http_port", "resource", "nm_version", "running_applications", "physical_resource", "node_status")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HTTP_PORT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NM_VERSION_FIELD_NUMBER: _ClassVar[int]
    RUNNING_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    PHYSICAL_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    NODE_STATUS_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_pb2.NodeId
    http_port: int
    resource: _yarn_pb2.Resource
    nm_version: str
    running_applications: _containers.RepeatedCompositeFieldContainer[ApplicationId]
    physical_resource: _yarn_pb2.Resource
    node_status: NodeStatus
    def __init__(self, node_id: _Optional[_Union[_yarn_pb2.NodeId, _Mapping]] = ..., http_port: _Optional[int] = ..., resource: _Optional[_Union[_yarn_pb2.Resource, _Mapping]] = ..., nm_version: _Optional[str] = ..., running_applications: _Optional[_Iterable[_Union[ApplicationId, _Mapping]]] = ..., physical_resource: _Optional[_Union[_yarn_pb2.Resource, _Mapping]] = ..., node_status: _Optional[_Union[NodeStatus, _Mapping]] = ...) -> None: ...

class RegisterNodeManagerResponse(_message.Message):
    __slots__ = ("container_token_master_key", "nm_token_master_key", "node_action", "rm_identifier", "diagnostics_message", "rm_version", "resource")
    CONTAINER_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NM_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NODE_ACTION_FIELD_NUMBER: _ClassVar[int]
    RM_IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RM_VERSION_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    container_token_master_key: MasterKey
    nm_token_master_key: MasterKey
    node_action: NodeAction
    rm_identifier: int
    diagnostics_message: str
    rm_version: str
    resource: _yarn_pb2.Resource
    def __init__(self, container_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nm_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., node_action: _Optional[_Union[NodeAction, str]] = ..., rm_identifier: _Optional[int] = ..., diagnostics_message: _Optional[str] = ..., rm_version: _Optional[str] = ..., resource: _Optional[_Union[_yarn_pb2.Resource, _Mapping]] = ...) -> None: ...

class NodeHeartbeatRequest(_message.Message):
    __slots__ = ("node_status", "last_known_container_token_master_key", "last_known_nm_token_master_key")
    NODE_STATUS_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_CONTAINER_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_KNOWN_NM_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    node_status: NodeStatus
    last_known_container_token_master_key: MasterKey
    last_known_nm_token_master_key: MasterKey
    def __init__(self, node_status: _Optional[_Union[NodeStatus, _Mapping]] = ..., last_known_container_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., last_known_nm_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ...) -> None: ...

class NodeHeartbeatResponse(_message.Message):
    __slots__ = ("response_id", "container_token_master_key", "nm_token_master_key", "node_action", "next_heartbeat_interval_millis", "diagnostics_message", "resource")
    RESPONSE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTAINER_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NM_TOKEN_MASTER_KEY_FIELD_NUMBER: _ClassVar[int]
    NODE_ACTION_FIELD_NUMBER: _ClassVar[int]
    NEXT_HEARTBEAT_INTERVAL_MILLIS_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSTICS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    response_id: int
    container_token_master_key: MasterKey
    nm_token_master_key: MasterKey
    node_action: NodeAction
    next_heartbeat_interval_millis: int
    diagnostics_message: str
    resource: _yarn_pb2.Resource
    def __init__(self, response_id: _Optional[int] = ..., container_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., nm_token_master_key: _Optional[_Union[MasterKey, _Mapping]] = ..., node_action: _Optional[_Union[NodeAction, str]] = ..., next_heartbeat_interval_millis: _Optional[int] = ..., diagnostics_message: _Optional[str] = ..., resource: _Optional[_Union[_yarn_pb2.Resource, _Mapping]] = ...) -> None: ...

class UnRegisterNodeManagerRequest(_message.Message):
    __slots__ = ("node_id",)
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_pb2.NodeId
    def __init__(self, node_id: _Optional[_Union[_yarn_pb2.NodeId, _Mapping]] = ...) -> None: ...

class UnRegisterNodeManagerResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
