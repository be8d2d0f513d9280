# SPDX-License-Identifier: Apache-2.0
"""Compare frames byte by byte with what Hadoop's own client writes, and feed broken ones."""

from __future__ import annotations

import struct

import pytest

from yarn_copilot.hadoop import errors, framing
from yarn_copilot.hadoop.model import NodeId, NodeResourceUpdate, Resource
from yarn_copilot.hadoop.proto import rpc_pb2
from yarn_copilot.hadoop.protocols import administration

CLIENT_ID = bytes(range(16))
PROTOCOL = b"org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB"
METHOD = b"updateNodeResource"
RPC_KIND_PROTOBUF = b"\x08\x02"
RPC_OP_FINAL = b"\x10\x00"
CLIENT_ID_FIELD = b"\x22\x10" + CLIENT_ID
RETRY_NONE = b"\x28\x01"
RETRY_ZERO = b"\x28\x00"

UPDATE_BODY = (
    b"\x0a\x1f"  # node_resource_map, 31 bytes
    b"\x0a\x09"  # node_id, 9 bytes
    b"\x0a\x04nm-0"  # host
    b"\x10\xe9\x3e"  # port 8041
    b"\x12\x12"  # resource_option, 18 bytes
    b"\x0a\x05"  # resource, 5 bytes
    b"\x08\x80\x20"  # memory 4096
    b"\x10\x04"  # vcores 4
    b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"  # timeout -1: a negative int32 takes ten bytes
)


def decoder(max_frame_bytes: int = 1_000_000) -> framing.ResponseDecoder:
    """Give a fresh decoder."""
    return framing.ResponseDecoder(max_frame_bytes=max_frame_bytes)


def delimited(message: bytes) -> bytes:
    """Put a one-byte length in front."""
    assert len(message) < 0x80
    return bytes((len(message),)) + message


def frame(content: bytes) -> bytes:
    """Put the frame's length in front."""
    return struct.pack(">i", len(content)) + content


def response(call_id: int = 7, body: bytes = b"\x0a\x01x") -> bytes:
    """Give a successful response, built field by field."""
    header = b"\x08" + framing.encode_varint(call_id) + b"\x10\x00\x18\x09" + b"\x3a\x10" + CLIENT_ID + b"\x40\x00"
    return frame(delimited(header) + delimited(body))


def test_connection_opens_with_magic_version_class_and_no_authentication() -> None:
    assert framing.connection_header() == b"hrpc" + b"\x09" + b"\x00" + b"\x00"


def test_context_names_effective_user_and_protocol() -> None:
    header = RPC_KIND_PROTOBUF + RPC_OP_FINAL + b"\x18\x05" + CLIENT_ID_FIELD + RETRY_NONE  # call id -3, zigzag
    user = b"\x12\x06" + b"\x0a\x04yarn"
    context = user + b"\x1a\x49" + PROTOCOL
    expected = b"\x00\x00\x00\x6f" + delimited(header) + delimited(context)

    assert (
        framing.connection_context_frame(client_id=CLIENT_ID, protocol=PROTOCOL.decode(), effective_user="yarn")
        == expected
    )


def test_context_without_a_user_is_refused_because_the_server_would_act_as_itself() -> None:
    with pytest.raises(ValueError, match="effective user"):
        framing.connection_context_frame(client_id=CLIENT_ID, protocol="p", effective_user="")


def test_update_with_timeout_minus_one_is_written_as_java_does() -> None:
    update = NodeResourceUpdate(NodeId("nm-0", 8041), Resource(4096, 4), -1)

    assert administration.encode_update_node_resource([update]) == UPDATE_BODY


def test_call_frame_carries_header_method_and_message() -> None:
    header = RPC_KIND_PROTOBUF + RPC_OP_FINAL + b"\x18\x00" + CLIENT_ID_FIELD + RETRY_ZERO
    method = b"\x0a\x12" + METHOD + b"\x12\x49" + PROTOCOL + b"\x18\x01"
    expected = b"\x00\x00\x00\x9f" + delimited(header) + b"\x61" + method + b"\x21" + UPDATE_BODY
    encoder = framing.RequestEncoder(client_id=CLIENT_ID, protocol=PROTOCOL.decode())

    first = encoder.call_frame(0, METHOD.decode(), UPDATE_BODY)
    again = encoder.call_frame(0, METHOD.decode(), UPDATE_BODY)

    assert first == expected
    assert again == expected


def test_client_id_of_a_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="16"):
        framing.RequestEncoder(client_id=b"short", protocol="p")


def test_ping_is_a_header_alone() -> None:
    header = RPC_KIND_PROTOBUF + RPC_OP_FINAL + b"\x18\x07" + CLIENT_ID_FIELD + RETRY_NONE  # call id -4, zigzag

    assert framing.ping_frame(client_id=CLIENT_ID) == b"\x00\x00\x00\x1b" + delimited(header)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        pytest.param(0, b"\x00", id="zero"),
        pytest.param(127, b"\x7f", id="largest of one byte"),
        pytest.param(128, b"\x80\x01", id="smallest of two bytes"),
        pytest.param(896_000, b"\x80\xd8\x36", id="a node list"),
    ],
)
def test_varint(value: int, encoded: bytes) -> None:
    assert framing.encode_varint(value) == encoded


def test_response_gives_call_id_and_message() -> None:
    assert list(decoder().receive(response(7, b"\x0a\x01x"))) == [
        framing.Response(call_id=7, status=framing.Status.SUCCESS, body=b"\x0a\x01x")
    ]


def test_responses_are_the_same_however_the_stream_is_cut() -> None:
    stream = response(1, b"a") + response(2, b"") + response(3, b"c" * 100)
    for cut in range(len(stream) + 1):
        one = decoder()
        got = [*one.receive(stream[:cut]), *one.receive(stream[cut:])]
        one.end()
        assert [(each.call_id, each.body) for each in got] == [(1, b"a"), (2, b""), (3, b"c" * 100)]
        assert one.buffered_bytes == 0


def test_stream_of_single_bytes_decodes() -> None:
    one = decoder()
    got = [each for byte in response(5, b"xyz") for each in one.receive(bytes((byte,)))]
    assert [(each.call_id, each.body) for each in got] == [(5, b"xyz")]


def test_error_response_carries_class_and_text() -> None:
    header = rpc_pb2.RpcResponseHeader(
        call_id=4, status=rpc_pb2.RpcResponseHeader.ERROR, exception_class_name="a.B", error_message="why\n\tat x"
    ).SerializeToString()

    assert list(decoder().receive(frame(delimited(header)))) == [
        framing.Response(
            call_id=4, status=framing.Status.ERROR, exception_class_name="a.B", error_message="why\n\tat x"
        )
    ]


@pytest.mark.parametrize(
    ("on_wire", "call_id"),
    [
        pytest.param(0xFFFF_FFFF, framing.CALL_ID_AUTHENTICATION_FAILED, id="authentication failed"),
        pytest.param(0xFFFF_FFFE, framing.CALL_ID_INVALID, id="invalid"),
        pytest.param(0xFFFF_FFDF, -33, id="sasl"),
        pytest.param(0x7FFF_FFFF, 2**31 - 1, id="largest positive"),
    ],
)
def test_call_ids_are_signed(on_wire: int, call_id: int) -> None:
    header = rpc_pb2.RpcResponseHeader(call_id=on_wire, status=rpc_pb2.RpcResponseHeader.FATAL).SerializeToString()

    (fatal,) = decoder().receive(frame(delimited(header)))

    assert (fatal.call_id, fatal.status) == (call_id, framing.Status.FATAL)


def test_unknown_fields_of_a_later_hadoop_are_skipped() -> None:
    header = b"\x08\x07\x10\x00" + b"\x92\x03\x03new"  # field 50
    (got,) = decoder().receive(frame(delimited(header) + delimited(b"m")))
    assert got.body == b"m"


def test_oversize_frame_is_refused_before_its_bytes_come() -> None:
    one = decoder(max_frame_bytes=100)
    with pytest.raises(errors.FrameTooLargeError, match="101 bytes, at most 100"):
        list(one.receive(struct.pack(">i", 101)))
    assert one.buffered_bytes == 4


def test_frame_of_exactly_the_limit_passes() -> None:
    data = response(1, b"x" * 50)
    assert len(list(decoder(max_frame_bytes=len(data) - 4).receive(data))) == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(struct.pack(">i", -1), "negative", id="negative length"),
        pytest.param(frame(b""), "response header has no length", id="empty frame"),
        pytest.param(frame(b"\xff\xff\xff\xff\xff\xff"), "response header has no length", id="endless varint"),
        pytest.param(frame(b"\x05\x08"), "response header announces 5 bytes, the frame has 1", id="header cut"),
        pytest.param(frame(delimited(b"\xff\xff")), "does not decode", id="header is garbage"),
        pytest.param(frame(delimited(b"\x08\x01")), "lacks its call id", id="header without status"),
        pytest.param(frame(delimited(b"\x10\x00")), "lacks its call id", id="header without call id"),
        pytest.param(frame(delimited(b"\x08\x01\x10\x09")), "known status", id="unknown status"),
        pytest.param(frame(delimited(b"\x08\x01\x10\x00")), "response message has no length", id="no message"),
        pytest.param(frame(delimited(b"\x08\x01\x10\x00") + b"\x03a"), "response message announces", id="message cut"),
        pytest.param(frame(delimited(b"\x08\x01\x10\x00") + b"\x01ab"), "1 bytes follow", id="bytes left over"),
    ],
)
def test_broken_frames_are_refused(data: bytes, text: str) -> None:
    with pytest.raises(errors.ProtocolViolationError, match=text):
        list(decoder().receive(data))


def test_http_server_is_recognised_and_its_status_line_quoted() -> None:
    with pytest.raises(errors.WrongPortError, match=r"HTTP/1.1 404 Not Found.*web port"):
        list(decoder(2**31 - 1).receive(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\n"))


def test_tls_server_is_recognised() -> None:
    with pytest.raises(errors.WrongPortError, match="HTTPS"):
        list(decoder(2**31 - 1).receive(b"\x15\x03\x03\x00\x02\x02\x46"))


@pytest.mark.parametrize("length", range(1, len(response())))
def test_stream_that_ends_inside_a_frame_says_how_far_it_came(length: int) -> None:
    one = decoder()
    assert list(one.receive(response()[:length])) == []
    announced = len(response()) if length >= 4 else "unknown"
    with pytest.raises(errors.TruncatedFrameError, match=f"after {length} of {announced} bytes"):
        one.end()
