from yarn_copilot.hadoop.proto import yarn_pb2 as _yarn_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HAServiceState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INITIALIZING: _ClassVar[HAServiceState]
    ACTIVE: _ClassVar[HAServiceState]
    STANDBY: _ClassVar[HAServiceState]
    OBSERVER: _ClassVar[HAServiceState]

class ApplicationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NEW: _ClassVar[ApplicationState]
    NEW_SAVING: _ClassVar[ApplicationState]
    SUBMITTED: _ClassVar[ApplicationState]
    ACCEPTED: _ClassVar[ApplicationState]
    RUNNING: _ClassVar[ApplicationState]
    FINISHED: _ClassVar[ApplicationState]
    FAILED: _ClassVar[ApplicationState]
    KILLED: _ClassVar[ApplicationState]

class DecommissionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NORMAL: _ClassVar[DecommissionType]
    GRACEFUL: _ClassVar[DecommissionType]
    FORCEFUL: _ClassVar[DecommissionType]

class AttributeMappingOperation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REPLACE: _ClassVar[AttributeMappingOperation]
    ADD: _ClassVar[AttributeMappingOperation]
    REMOVE: _ClassVar[AttributeMappingOperation]
INITIALIZING: HAServiceState
ACTIVE: HAServiceState
STANDBY: HAServiceState
OBSERVER: HAServiceState
NEW: ApplicationState
NEW_SAVING: ApplicationState
SUBMITTED: ApplicationState
ACCEPTED: ApplicationState
RUNNING: ApplicationState
FINISHED: ApplicationState
FAILED: ApplicationState
KILLED: ApplicationState
NORMAL: DecommissionType
GRACEFUL: DecommissionType
FORCEFUL: DecommissionType
REPLACE: AttributeMappingOperation
ADD: AttributeMappingOperation
REMOVE: AttributeMappingOperation

class GetServiceStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetServiceStatusResponse(_message.Message):
    __slots__ = ("state", "ready_to_become_active", "not_ready_reason")
    STATE_FIELD_NUMBER: _ClassVar[int]
    READY_TO_BECOME_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    NOT_READY_REASON_FIELD_NUMBER: _ClassVar[int]
    state: HAServiceState
    ready_to_become_active: bool
    not_ready_reason: str
    def __init__(self, state: _Optional[_Union[HAServiceState, str]] = ..., ready_to_become_active: _Optional[bool] = ..., not_ready_reason: _Optional[str] = ...) -> None: ...

class ApplicationId(_message.Message):
    __slots__ = ("id", "cluster_timestamp")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    id: int
    cluster_timestamp: int
    def __init__(self, id: _Optional[int] = ..., cluster_timestamp: _Optional[int] = ...) -> None: ...

class ApplicationUsage(_message.Message):
    __slots__ = ("used_containers", "reserved_containers", "used", "reserved", "needed")
    USED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    RESERVED_CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    used_containers: int
    reserved_containers: int
    used: _yarn_pb2.Resource
    reserved: _yarn_pb2.Resource
    needed: _yarn_pb2.Resource
    def __init__(self, used_containers: _Optional[int] = ..., reserved_containers: _Optional[int] = ..., used: _Optional[_Union[_yarn_pb2.Resource, _Mapping]] = ..., reserved: _Optional[_Union[_yarn_pb2.Resource, _Mapping]] = ..., needed: _Optional[_Union[_yarn_pb2.Resource, _Mapping]] = ...) -> None: ...

class ApplicationReport(_message.Message):
    __slots__ = ("application_id", "user", "queue", "name", "state", "start_millis", "finish_millis", "usage", "progress", "application_type")
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    START_MILLIS_FIELD_NUMBER: _ClassVar[int]
    FINISH_MILLIS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_TYPE_FIELD_NUMBER: _ClassVar[int]
    application_id: ApplicationId
    user: str
    queue: str
    name: str
    state: ApplicationState
    start_millis: int
    finish_millis: int
    usage: ApplicationUsage
    progress: float
    application_type: str
    def __init__(self, application_id: _Optional[_Union[ApplicationId, _Mapping]] = ..., user: _Optional[str] = ..., queue: _Optional[str] = ..., name: _Optional[str] = ..., state: _Optional[_Union[ApplicationState, str]] = ..., start_millis: _Optional[int] = ..., finish_millis: _Optional[int] = ..., usage: _Optional[_Union[ApplicationUsage, _Mapping]] = ..., progress: _Optional[float] = ..., application_type: _Optional[str] = ...) -> None: ...

class GetApplicationsRequest(_message.Message):
    __slots__ = ("application_states", "users", "queues", "limit")
    APPLICATION_STATES_FIELD_NUMBER: _ClassVar[int]
    USERS_FIELD_NUMBER: _ClassVar[int]
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    application_states: _containers.RepeatedScalarFieldContainer[ApplicationState]
    users: _containers.RepeatedScalarFieldContainer[str]
    queues: _containers.RepeatedScalarFieldContainer[str]
    limit: int
    def __init__(self, application_states: _Optional[_Iterable[_Union[ApplicationState, str]]] = ..., users: _Optional[_Iterable[str]] = ..., queues: _Optional[_Iterable[str]] = ..., limit: _Optional[int] = ...) -> None: ...

class GetApplicationsResponse(_message.Message):
    __slots__ = ("applications",)
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    applications: _containers.RepeatedCompositeFieldContainer[ApplicationReport]
    def __init__(self, applications: _Optional[_Iterable[_Union[ApplicationReport, _Mapping]]] = ...) -> None: ...

class RefreshNodesRequest(_message.Message):
    __slots__ = ("decommission_type", "decommission_timeout_seconds")
    DECOMMISSION_TYPE_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSION_TIMEOUT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    decommission_type: DecommissionType
    decommission_timeout_seconds: int
    def __init__(self, decommission_type: _Optional[_Union[DecommissionType, str]] = ..., decommission_timeout_seconds: _Optional[int] = ...) -> None: ...

class RefreshNodesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckForDecommissioningNodesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckForDecommissioningNodesResponse(_message.Message):
    __slots__ = ("decommissioning_nodes",)
    DECOMMISSIONING_NODES_FIELD_NUMBER: _ClassVar[int]
    decommissioning_nodes: _containers.RepeatedCompositeFieldContainer[_yarn_pb2.NodeId]
    def __init__(self, decommissioning_nodes: _Optional[_Iterable[_Union[_yarn_pb2.NodeId, _Mapping]]] = ...) -> None: ...

class NodeIdToLabels(_message.Message):
    __slots__ = ("node_id", "node_labels")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    NODE_LABELS_FIELD_NUMBER: _ClassVar[int]
    node_id: _yarn_pb2.NodeId
    node_labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node_id: _Optional[_Union[_yarn_pb2.NodeId, _Mapping]] = ..., node_labels: _Optional[_Iterable[str]] = ...) -> None: ...

class ReplaceLabelsOnNodesRequest(_message.Message):
    __slots__ = ("node_to_labels", "fail_on_unknown_nodes")
    NODE_TO_LABELS_FIELD_NUMBER: _ClassVar[int]
    FAIL_ON_UNKNOWN_NODES_FIELD_NUMBER: _ClassVar[int]
    node_to_labels: _containers.RepeatedCompositeFieldContainer[NodeIdToLabels]
    fail_on_unknown_nodes: bool
    def __init__(self, node_to_labels: _Optional[_Iterable[_Union[NodeIdToLabels, _Mapping]]] = ..., fail_on_unknown_nodes: _Optional[bool] = ...) -> None: ...

class ReplaceLabelsOnNodesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetNodesToLabelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GetNodesToLabelsResponse(_message.Message):
    __slots__ = ("node_to_labels",)
    NODE_TO_LABELS_FIELD_NUMBER: _ClassVar[int]
    node_to_labels: _containers.RepeatedCompositeFieldContainer[NodeIdToLabels]
    def __init__(self, node_to_labels: _Optional[_Iterable[_Union[NodeIdToLabels, _Mapping]]] = ...) -> None: ...

class NodeAttributeKey(_message.Message):
    __slots__ = ("prefix", "name")
    PREFIX_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    prefix: str
    name: str
    def __init__(self, prefix: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class NodeAttribute(_message.Message):
    __slots__ = ("key", "type", "value")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STRING: _ClassVar[NodeAttribute.Type]
    STRING: NodeAttribute.Type
    KEY_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: NodeAttributeKey
    type: NodeAttribute.Type
    value: str
    def __init__(self, key: _Optional[_Union[NodeAttributeKey, _Mapping]] = ..., type: _Optional[_Union[NodeAttribute.Type, str]] = ..., value: _Optional[str] = ...) -> None: ...

class NodeToAttributes(_message.Message):
    __slots__ = ("node", "node_attributes")
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODE_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    node: str
    node_attributes: _containers.RepeatedCompositeFieldContainer[NodeAttribute]
    def __init__(self, node: _Optional[str] = ..., node_attributes: _Optional[_Iterable[_Union[NodeAttribute, _Mapping]]] = ...) -> None: ...

class NodesToAttributesMappingRequest(_message.Message):
    __slots__ = ("operation", "node_to_attributes", "fail_on_unknown_nodes")
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    NODE_TO_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    FAIL_ON_UNKNOWN_NODES_FIELD_NUMBER: _ClassVar[int]
    operation: AttributeMappingOperation
    node_to_attributes: _containers.RepeatedCompositeFieldContainer[NodeToAttributes]
    fail_on_unknown_nodes: bool
    def __init__(self, operation: _Optional[_Union[AttributeMappingOperation, str]] = ..., node_to_attributes: _Optional[_Iterable[_Union[NodeToAttributes, _Mapping]]] = ..., fail_on_unknown_nodes: _Optional[bool] = ...) -> None: ...

class NodesToAttributesMappingResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SecurityToken(_message.Message):
    __slots__ = ("identifier", "password", "kind", "service")
    IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
    PASSWORD_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    identifier: bytes
    password: bytes
    kind: str
    service: str
    def __init__(self, identifier: _Optional[bytes] = ..., password: _Optional[bytes] = ..., kind: _Optional[str] = ..., service: _Optional[str] = ...) -> None: ...

class GetDelegationTokenRequest(_message.Message):
    __slots__ = ("renewer",)
    RENEWER_FIELD_NUMBER: _ClassVar[int]
    renewer: str
    def __init__(self, renewer: _Optional[str] = ...) -> None: ...

class GetDelegationTokenResponse(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: SecurityToken
    def __init__(self, token: _Optional[_Union[SecurityToken, _Mapping]] = ...) -> None: ...

class GetNodesToAttributesRequest(_message.Message):
    __slots__ = ("hostnames",)
    HOSTNAMES_FIELD_NUMBER: _ClassVar[int]
    hostnames: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, hostnames: _Optional[_Iterable[str]] = ...) -> None: ...

class GetNodesToAttributesResponse(_message.Message):
    __slots__ = ("nodes_to_attributes",)
    NODES_TO_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    nodes_to_attributes: _containers.RepeatedCompositeFieldContainer[NodeToAttributes]
    def __init__(self, nodes_to_attributes: _Optional[_Iterable[_Union[NodeToAttributes, _Mapping]]] = ...) -> None: ...
