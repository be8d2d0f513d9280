from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RpcKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RPC_BUILTIN: _ClassVar[RpcKind]
    RPC_WRITABLE: _ClassVar[RpcKind]
    RPC_PROTOCOL_BUFFER: _ClassVar[RpcKind]
RPC_BUILTIN: RpcKind
RPC_WRITABLE: RpcKind
RPC_PROTOCOL_BUFFER: RpcKind

class RpcRequestHeader(_message.Message):
    __slots__ = ("rpc_kind", "rpc_op", "call_id", "client_id", "retry_count")
    class Operation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RPC_FINAL_PACKET: _ClassVar[RpcRequestHeader.Operation]
        RPC_CONTINUATION_PACKET: _ClassVar[RpcRequestHeader.Operation]
        RPC_CLOSE_CONNECTION: _ClassVar[RpcRequestHeader.Operation]
    RPC_FINAL_PACKET: RpcRequestHeader.Operation
    RPC_CONTINUATION_PACKET: RpcRequestHeader.Operation
    RPC_CLOSE_CONNECTION: RpcRequestHeader.Operation
    RPC_KIND_FIELD_NUMBER: _ClassVar[int]
    RPC_OP_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    rpc_kind: RpcKind
    rpc_op: RpcRequestHeader.Operation
    call_id: int
    client_id: bytes
    retry_count: int
    def __init__(self, rpc_kind: _Optional[_Union[RpcKind, str]] = ..., rpc_op: _Optional[_Union[RpcRequestHeader.Operation, str]] = ..., call_id: _Optional[int] = ..., client_id: _Optional[bytes] = ..., retry_count: _Optional[int] = ...) -> None: ...

class RpcResponseHeader(_message.Message):
    __slots__ = ("call_id", "status", "server_ipc_version", "exception_class_name", "error_message", "error_detail", "client_id", "retry_count")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SUCCESS: _ClassVar[RpcResponseHeader.Status]
        ERROR: _ClassVar[RpcResponseHeader.Status]
        FATAL: _ClassVar[RpcResponseHeader.Status]
    SUCCESS: RpcResponseHeader.Status
    ERROR: RpcResponseHeader.Status
    FATAL: RpcResponseHeader.Status
    class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ERROR_APPLICATION: _ClassVar[RpcResponseHeader.ErrorCode]
        ERROR_NO_SUCH_METHOD: _ClassVar[RpcResponseHeader.ErrorCode]
        ERROR_NO_SUCH_PROTOCOL: _ClassVar[RpcResponseHeader.ErrorCode]
        ERROR_RPC_SERVER: _ClassVar[RpcResponseHeader.ErrorCode]
        ERROR_SERIALIZING_RESPONSE: _ClassVar[RpcResponseHeader.ErrorCode]
        ERROR_RPC_VERSION_MISMATCH: _ClassVar[RpcResponseHeader.ErrorCode]
        FATAL_UNKNOWN: _ClassVar[RpcResponseHeader.ErrorCode]
        FATAL_UNSUPPORTED_SERIALIZATION: _ClassVar[RpcResponseHeader.ErrorCode]
        FATAL_INVALID_RPC_HEADER: _ClassVar[RpcResponseHeader.ErrorCode]
        FATAL_DESERIALIZING_REQUEST: _ClassVar[RpcResponseHeader.ErrorCode]
        FATAL_VERSION_MISMATCH: _ClassVar[RpcResponseHeader.ErrorCode]
        FATAL_UNAUTHORIZED: _ClassVar[RpcResponseHeader.ErrorCode]
    ERROR_APPLICATION: RpcResponseHeader.ErrorCode
    ERROR_NO_SUCH_METHOD: RpcResponseHeader.ErrorCode
    ERROR_NO_SUCH_PROTOCOL: RpcResponseHeader.ErrorCode
    ERROR_RPC_SERVER: RpcResponseHeader.ErrorCode
    ERROR_SERIALIZING_RESPONSE: RpcResponseHeader.ErrorCode
    ERROR_RPC_VERSION_MISMATCH: RpcResponseHeader.ErrorCode
    FATAL_UNKNOWN: RpcResponseHeader.ErrorCode
    FATAL_UNSUPPORTED_SERIALIZATION: RpcResponseHeader.ErrorCode
    FATAL_INVALID_RPC_HEADER: RpcResponseHeader.ErrorCode
    FATAL_DESERIALIZING_REQUEST: RpcResponseHeader.ErrorCode
    FATAL_VERSION_MISMATCH: RpcResponseHeader.ErrorCode
    FATAL_UNAUTHORIZED: RpcResponseHeader.ErrorCode
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SERVER_IPC_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_CLASS_NAME_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_DETAIL_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    call_id: int
    status: RpcResponseHeader.Status
    server_ipc_version: int
    exception_class_name: str
    error_message: str
    error_detail: RpcResponseHeader.ErrorCode
    client_id: bytes
    retry_count: int
    def __init__(self, call_id: _Optional[int] = ..., status: _Optional[_Union[RpcResponseHeader.Status, str]] = ..., server_ipc_version: _Optional[int] = ..., exception_class_name: _Optional[str] = ..., error_message: _Optional[str] = ..., error_detail: _Optional[_Union[RpcResponseHeader.ErrorCode, str]] = ..., client_id: _Optional[bytes] = ..., retry_count: _Optional[int] = ...) -> None: ...

class UserInformation(_message.Message):
    __slots__ = ("effective_user", "real_user")
    EFFECTIVE_USER_FIELD_NUMBER: _ClassVar[int]
    REAL_USER_FIELD_NUMBER: _ClassVar[int]
    effective_user: str
    real_user: str
    def __init__(self, effective_user: _Optional[str] = ..., real_user: _Optional[str] = ...) -> None: ...

class IpcConnectionContext(_message.Message):
    __slots__ = ("user_info", "protocol")
    USER_INFO_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    user_info: UserInformation
    protocol: str
    def __init__(self, user_info: _Optional[_Union[UserInformation, _Mapping]] = ..., protocol: _Optional[str] = ...) -> None: ...

class RequestHeader(_message.Message):
    __slots__ = ("method_name", "declaring_class_protocol_name", "client_protocol_version")
    METHOD_NAME_FIELD_NUMBER: _ClassVar[int]
    DECLARING_CLASS_PROTOCOL_NAME_FIELD_NUMBER: _ClassVar[int]
    CLIENT_PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    method_name: str
    declaring_class_protocol_name: str
    client_protocol_version: int
    def __init__(self, method_name: _Optional[str] = ..., declaring_class_protocol_name: _Optional[str] = ..., client_protocol_version: _Optional[int] = ...) -> None: ...

class RpcSasl(_message.Message):
    __slots__ = ("version", "state", "token", "auths")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SUCCESS: _ClassVar[RpcSasl.State]
        NEGOTIATE: _ClassVar[RpcSasl.State]
        INITIATE: _ClassVar[RpcSasl.State]
        CHALLENGE: _ClassVar[RpcSasl.State]
        RESPONSE: _ClassVar[RpcSasl.State]
        WRAP: _ClassVar[RpcSasl.State]
    SUCCESS: RpcSasl.State
    NEGOTIATE: RpcSasl.State
    INITIATE: RpcSasl.State
    CHALLENGE: RpcSasl.State
    RESPONSE: RpcSasl.State
    WRAP: RpcSasl.State
    class Auth(_message.Message):
        __slots__ = ("method", "mechanism", "protocol", "server_id", "challenge")
        METHOD_FIELD_NUMBER: _ClassVar[int]
        MECHANISM_FIELD_NUMBER: _ClassVar[int]
        PROTOCOL_FIELD_NUMBER: _ClassVar[int]
        SERVER_ID_FIELD_NUMBER: _ClassVar[int]
        CHALLENGE_FIELD_NUMBER: _ClassVar[int]
        method: str
        mechanism: str
        protocol: str
        server_id: str
        challenge: bytes
        def __init__(self, method: _Optional[str] = ..., mechanism: _Optional[str] = ..., protocol: _Optional[str] = ..., server_id: _Optional[str] = ..., challenge: _Optional[bytes] = ...) -> None: ...
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AUTHS_FIELD_NUMBER: _ClassVar[int]
    version: int
    state: RpcSasl.State
    token: bytes
    auths: _containers.RepeatedCompositeFieldContainer[RpcSasl.Auth]
    def __init__(self, version: _Optional[int] = ..., state: _Optional[_Union[RpcSasl.State, str]] = ..., token: _Optional[bytes] = ..., auths: _Optional[_Iterable[_Union[RpcSasl.Auth, _Mapping]]] = ...) -> None: ...
