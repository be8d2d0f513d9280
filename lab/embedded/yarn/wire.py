# SPDX-License-Identifier: Apache-2.0
"""Read and write Hadoop RPC as a server; bytes only.

Written independently of `yarn_copilot.hadoop.framing`, so that one mistake is not made on both sides.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from google.protobuf.message import DecodeError

from yarn_copilot.hadoop.proto import rpc_pb2

HEADER_BYTES = 7
EXPECTED_HEADER = b"hrpc\x09\x00\x00"
SASL_HEADER = b"hrpc\x09\x00\xdf"
SASL_CALL_ID = -33
CONTEXT_CALL_ID = -3
PING_CALL_ID = -4
HTTP_ANSWER = (
    b"HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n"
    b"This is a Hadoop RPC port, and the request was HTTP; the web interface has another port.\r\n"
)
STACK_TRACE = "\n\tat org.example.Server.call(Server.java:1)\n\tat org.example.Handler.run(Handler.java:2)\n"


class BadRequestError(Exception):
    """Say that a client broke the protocol."""


@dataclass(frozen=True, slots=True)
class Request:
    """Hold one frame from a client; `protocol`, `method` and `body` are empty unless it is a call."""

    call_id: int
    client_id: bytes
    retry_count: int
    protocol: str = ""
    method: str = ""
    body: bytes = b""
    context: rpc_pb2.IpcConnectionContext | None = None


def read_request(frame: bytes) -> Request:
    """Read one frame without its length.

    Raises:
        BadRequestError: it does not decode, or has bytes left.
    """
    try:
        request, position = _decode(frame)
    except (DecodeError, IndexError) as error:
        raise BadRequestError(f"frame of {len(frame)} bytes does not decode") from error
    if position != len(frame):
        raise BadRequestError(f"{len(frame) - position} bytes left over")
    return request


def _decode(frame: bytes) -> tuple[Request, int]:
    """Read a frame and tell where it ends."""
    header_bytes, position = _delimited(frame, 0)
    header = rpc_pb2.RpcRequestHeader.FromString(header_bytes)
    if header.rpc_kind != rpc_pb2.RPC_PROTOCOL_BUFFER or not header.HasField("rpc_op"):
        raise BadRequestError("rpc kind or operation is wrong")
    request = Request(header.call_id, header.client_id, header.retry_count)
    if header.call_id == CONTEXT_CALL_ID:
        context_bytes, position = _delimited(frame, position)
        return replace(request, context=rpc_pb2.IpcConnectionContext.FromString(context_bytes)), position
    if header.call_id < 0:
        return request, position
    method_bytes, position = _delimited(frame, position)
    method = rpc_pb2.RequestHeader.FromString(method_bytes)
    body, position = _delimited(frame, position)
    call = replace(request, protocol=method.declaring_class_protocol_name, method=method.method_name, body=body)
    return call, position


def read_sasl(frame: bytes) -> rpc_pb2.RpcSasl:
    """Read a frame that must hold a SASL message.

    Raises:
        OSError: it holds another one, or does not decode.
    """
    try:
        header_bytes, position = _delimited(frame, 0)
        header = rpc_pb2.RpcRequestHeader.FromString(header_bytes)
        body, _end = _delimited(frame, position)
        message = rpc_pb2.RpcSasl.FromString(body)
    except (DecodeError, IndexError, BadRequestError) as error:
        raise OSError("SASL frame does not decode") from error
    if header.call_id != SASL_CALL_ID or header.client_id:
        raise OSError("no SASL frame, or one with a client id")
    return message


def sasl(message: rpc_pb2.RpcSasl) -> bytes:
    """Write a SASL message as a server does: in a successful response with call id -33."""
    return success(Request(SASL_CALL_ID, b"", -1), message.SerializeToString())


def success(request: Request, body: bytes) -> bytes:
    """Write the frame of a successful call."""
    header = _header(request, rpc_pb2.RpcResponseHeader.SUCCESS)
    return _framed(_with_length(header.SerializeToString()) + _with_length(body))


def failure(request: Request, class_name: str, message: str, *, is_fatal: bool = False) -> bytes:
    """Write the frame of a refused call; the text gets a stack trace as Java's has."""
    status = rpc_pb2.RpcResponseHeader.FATAL if is_fatal else rpc_pb2.RpcResponseHeader.ERROR
    header = _header(request, status)
    header.exception_class_name = class_name
    header.error_message = message + STACK_TRACE
    header.error_detail = (
        rpc_pb2.RpcResponseHeader.FATAL_UNKNOWN if is_fatal else rpc_pb2.RpcResponseHeader.ERROR_APPLICATION
    )
    return _framed(_with_length(header.SerializeToString()))


def _header(request: Request, status: rpc_pb2.RpcResponseHeader.Status) -> rpc_pb2.RpcResponseHeader:
    return rpc_pb2.RpcResponseHeader(
        call_id=request.call_id & 0xFFFF_FFFF,
        status=status,
        server_ipc_version=9,
        client_id=request.client_id,
        retry_count=request.retry_count,
    )


def _delimited(frame: bytes, position: int) -> tuple[bytes, int]:
    """Cut a message with its length in front; IndexError where the frame is too short for the length."""
    length = shift = 0
    while True:
        byte = frame[position]
        position += 1
        length += (byte % 0x80) << shift
        shift += 7
        if byte < 0x80:
            break
    end = position + length
    if end > len(frame):
        raise BadRequestError("message is longer than its frame")
    return frame[position:end], end


def _with_length(message: bytes) -> bytes:
    length, prefix = len(message), bytearray()
    while length >= 0x80:
        prefix.append(length % 0x80 + 0x80)
        length //= 0x80
    prefix.append(length)
    return bytes(prefix) + message


def _framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content
