# SPDX-License-Identifier: Apache-2.0
"""Turn calls into bytes and bytes into responses; no I/O, no clock.

Layout, source org.apache.hadoop.ipc.Client and Server 3.5.0:

- Connection header, 7 bytes: `hrpc`, version, service class, authentication protocol.
- Then frames both ways: big-endian int32 length (not counting itself), then that many bytes.
- Client frame: delimited RpcRequestHeader, then the payload. Server frame: delimited RpcResponseHeader and, on
  success, the delimited response message. "Delimited" is a varint length followed by a protobuf message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from google.protobuf.message import DecodeError
from msgspec import Struct

from yarn_copilot.hadoop.errors import (
    REMOTE_TEXT_LIMIT,
    FrameTooLargeError,
    ProtocolViolationError,
    TruncatedFrameError,
    WrongPortError,
)
from yarn_copilot.hadoop.proto import rpc_pb2

CONNECTION_MAGIC: Final = b"hrpc"
RPC_VERSION: Final = 9
SERVICE_CLASS_DEFAULT: Final = 0
AUTHENTICATION_NONE: Final = 0
AUTHENTICATION_SASL: Final = 0xDF
"""-33 as an unsigned byte."""

CLIENT_ID_BYTES: Final = 16
CALL_ID_CONNECTION_CONTEXT: Final = -3
CALL_ID_PING: Final = -4
CALL_ID_SASL: Final = -33
CALL_ID_INVALID: Final = -2
CALL_ID_AUTHENTICATION_FAILED: Final = -1
CALL_ID_MASK: Final = 0x7FFF_FFFF
PROTOCOL_VERSION: Final = 1

LENGTH_BYTES: Final = 4
VARINT_BYTES_MAX: Final = 5
"""A length fits into int32; longer varints are garbage."""

HTTP_PREFIX: Final = b"HTTP"
TLS_ALERT_PREFIX: Final = b"\x15\x03"

_LENGTH: Final = struct.Struct(">i")


class Status(IntEnum):
    """Give RpcStatusProto its names."""

    SUCCESS = 0
    ERROR = 1
    FATAL = 2


class Response(Struct, frozen=True):
    """Hold one frame from the server.

    Attributes:
        call_id: signed; -1 and -2 come with FATAL and belong to no call.
        body: the response message without its length prefix; empty unless status is SUCCESS.
        exception_class_name: Java class, empty on SUCCESS.
        error_message: server's text as sent (a Java stack trace), empty on SUCCESS.
    """

    call_id: int
    status: Status
    body: bytes = b""
    exception_class_name: str = ""
    error_message: str = ""


def connection_header(*, authentication: int = AUTHENTICATION_NONE) -> bytes:
    """Give the 7 bytes that open a connection; with `AUTHENTICATION_SASL` a handshake follows."""
    return CONNECTION_MAGIC + bytes((RPC_VERSION, SERVICE_CLASS_DEFAULT, authentication))


def connection_context_frame(
    *, client_id: bytes, protocol: str, effective_user: str | None, real_user: str | None = None
) -> bytes:
    """Give the frame that names protocol and user.

    Args:
        client_id: 16 bytes, a UUID.
        protocol: Java interface name.
        effective_user: whom the calls run as. None only after a SASL handshake, which has named the user already.
            Without one a server with simple authentication runs the calls as its own, administrative user.
        real_user: who calls on behalf of the effective user, with simple authentication.

    Raises:
        ValueError: `effective_user` is the empty text.
    """
    context = rpc_pb2.IpcConnectionContext(protocol=protocol)
    if effective_user is not None:
        if not effective_user:
            raise ValueError("effective user must not be empty")
        context.user_info.effective_user = effective_user
        if real_user:
            context.user_info.real_user = real_user
    return _frame(_request_header(CALL_ID_CONNECTION_CONTEXT, client_id) + _delimited(context.SerializeToString()))


def sasl_frame(message: bytes) -> bytes:
    """Give the frame of one serialized RpcSasl message; such frames carry no client id."""
    return _frame(_request_header(CALL_ID_SASL, b"") + _delimited(message))


def ping_frame(*, client_id: bytes) -> bytes:
    """Give the frame that keeps a connection from being idle; servers do not answer it."""
    return _frame(_request_header(CALL_ID_PING, client_id))


class RequestEncoder:
    """Write call frames of one connection: client id, interface and version are always the same."""

    def __init__(self, *, client_id: bytes, protocol: str) -> None:
        """Keep what every frame repeats.

        Args:
            client_id: 16 bytes, a UUID.
            protocol: Java interface name, for example ...ResourceManagerAdministrationProtocolPB.
        """
        if len(client_id) != CLIENT_ID_BYTES:
            raise ValueError(f"client id has {len(client_id)} bytes, must be {CLIENT_ID_BYTES}")
        self._client_id = client_id
        self._protocol = protocol
        self._method_headers: dict[str, bytes] = {}

    def call_frame(self, call_id: int, method: str, request: bytes) -> bytes:
        """Give the frame of one call.

        Args:
            call_id: 0..2**31-1, unique on the connection while the call is open.
            method: Java method name.
            request: serialized request message.
        """
        method_header = self._method_headers.get(method)
        if method_header is None:
            header = rpc_pb2.RequestHeader(
                method_name=method,
                declaring_class_protocol_name=self._protocol,
                client_protocol_version=PROTOCOL_VERSION,
            )
            method_header = self._method_headers[method] = _delimited(header.SerializeToString())
        return _frame(_request_header(call_id, self._client_id) + method_header + _delimited(request))


class ResponseDecoder:
    """Collect bytes of one connection and give responses, each as soon as it is whole.

    After an error the decoder is of no more use: the stream has lost its frame boundaries.
    """

    def __init__(self, *, max_frame_bytes: int) -> None:
        """Start at a frame boundary.

        Args:
            max_frame_bytes: largest length accepted; a longer frame is refused when its length is read.
        """
        self._max_frame_bytes = max_frame_bytes
        self._buffer = bytearray()
        self._has_decoded = False

    @property
    def buffered_bytes(self) -> int:
        """Tell how many bytes of an unfinished frame are held."""
        return len(self._buffer)

    def receive(self, data: bytes) -> Iterator[Response]:
        """Add bytes and give the responses they complete.

        Raises:
            WrongPortError: the first bytes are HTTP's or TLS's.
            FrameTooLargeError: a frame announces more than `max_frame_bytes`.
            ProtocolViolationError: a length is negative, a header does not decode, or bytes are left over.
        """
        self._buffer += data
        while (length := self._next_length()) is not None and len(self._buffer) >= LENGTH_BYTES + length:
            with memoryview(self._buffer) as view:
                frame = bytes(view[LENGTH_BYTES : LENGTH_BYTES + length])
            del self._buffer[: LENGTH_BYTES + length]
            response = decode_response(frame)
            self._has_decoded = True
            yield response

    def end(self) -> None:
        """Say that the stream has ended.

        Raises:
            TruncatedFrameError: it ended inside a frame.
        """
        if self._buffer:
            raise TruncatedFrameError(f"inside a frame, after {len(self._buffer)} of {self._announced_text()} bytes")

    def _next_length(self) -> int | None:
        """Read the length at the start of the buffer; None while fewer than 4 bytes are there."""
        if len(self._buffer) < LENGTH_BYTES:
            return None
        if not self._has_decoded:
            _refuse_foreign_protocol(self._buffer)
        length: int = _LENGTH.unpack_from(self._buffer)[0]
        if length < 0:
            raise ProtocolViolationError(f"frame announces a negative length ({length})")
        if length > self._max_frame_bytes:
            raise FrameTooLargeError(f"frame announces {length} bytes, at most {self._max_frame_bytes} are accepted")
        return length

    def _announced_text(self) -> str:
        if len(self._buffer) < LENGTH_BYTES:
            return "unknown"
        return str(LENGTH_BYTES + _LENGTH.unpack_from(self._buffer)[0])


def decode_response(frame: bytes) -> Response:
    """Read one frame without its length.

    Raises:
        ProtocolViolationError: the header does not decode, the message is shorter or longer than announced, or the
            status is unknown.
    """
    header_start, header_end = _delimited_span(frame, 0, "response header")
    header = rpc_pb2.RpcResponseHeader()
    try:
        header.ParseFromString(frame[header_start:header_end])
    except DecodeError as error:
        raise ProtocolViolationError(f"response header does not decode ({len(frame)} bytes in the frame)") from error
    # Python's protobuf reads absent required fields and unknown enum values as defaults; here that would be success.
    if not header.IsInitialized():
        raise ProtocolViolationError("response header lacks its call id or a known status")
    call_id = header.call_id - (1 << 32) if header.call_id > CALL_ID_MASK else header.call_id
    if header.status != rpc_pb2.RpcResponseHeader.SUCCESS:
        return Response(
            call_id=call_id,
            status=Status(header.status),
            exception_class_name=header.exception_class_name,
            error_message=header.error_message,
        )
    body_start, body_end = _delimited_span(frame, header_end, "response message")
    if body_end != len(frame):
        raise ProtocolViolationError(f"{len(frame) - body_end} bytes follow the response message")
    return Response(call_id=call_id, status=Status.SUCCESS, body=frame[body_start:body_end])


def encode_varint(value: int) -> bytes:
    """Write a non-negative integer, 7 bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _delimited(message: bytes) -> bytes:
    return encode_varint(len(message)) + message


def _frame(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def _request_header(call_id: int, client_id: bytes) -> bytes:
    header = rpc_pb2.RpcRequestHeader(
        rpc_kind=rpc_pb2.RPC_PROTOCOL_BUFFER,
        rpc_op=rpc_pb2.RpcRequestHeader.RPC_FINAL_PACKET,
        call_id=call_id,
        client_id=client_id,
        retry_count=0 if call_id >= 0 else -1,
    )
    return _delimited(header.SerializeToString())


def _delimited_span(frame: bytes, offset: int, what: str) -> tuple[int, int]:
    """Find start and end of a delimited message that begins at `offset`."""
    length = 0
    for index in range(VARINT_BYTES_MAX):
        position = offset + index
        if position >= len(frame):
            break
        byte = frame[position]
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            start = position + 1
            if start + length > len(frame):
                raise ProtocolViolationError(f"{what} announces {length} bytes, the frame has {len(frame) - start}")
            return start, start + length
    raise ProtocolViolationError(f"{what} has no length")


def _refuse_foreign_protocol(start: bytearray) -> None:
    """Recognise a server of another protocol by its first bytes, which would be an absurd length."""
    if start.startswith(HTTP_PREFIX):
        line = bytes(start[:REMOTE_TEXT_LIMIT]).partition(b"\r\n")[0].decode("latin-1")
        raise WrongPortError(
            f"an HTTP server answered ({line!r}): this is a web port, the address of an RPC port is needed"
        )
    if start.startswith(TLS_ALERT_PREFIX):
        raise WrongPortError("a TLS server answered: this is an HTTPS port, the address of an RPC port is needed")
