# SPDX-License-Identifier: Apache-2.0
"""A text that is no UTF-8 is an answer that does not decode; it never comes in as bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yarn_copilot.hadoop import errors, framing
from yarn_copilot.hadoop.protocols import application_client, applications
from yarn_copilot.hadoop.protocols.node_reports import NodeReportDecoder

BAD_TEXT = b"\xa9\x02"


def field(number: int, content: bytes) -> bytes:
    """Write a length-delimited field."""
    return bytes((number << 3 | 2, len(content))) + content


NODE_ID = field(1, b"nm") + b"\x10\x01"
REPORT = field(1, NODE_ID) + field(3, b"nm:8042")


@pytest.mark.parametrize(
    ("decode", "body"),
    [
        pytest.param(
            lambda body: application_client.decode_queue_info(body, "root"), field(1, field(1, BAD_TEXT)), id="queue"
        ),
        pytest.param(NodeReportDecoder().decode, field(1, field(1, field(1, BAD_TEXT))), id="host"),
        pytest.param(NodeReportDecoder().decode, field(1, field(1, NODE_ID) + field(3, BAD_TEXT)), id="http address"),
        pytest.param(NodeReportDecoder().decode, field(1, REPORT + field(10, BAD_TEXT)), id="label"),
        pytest.param(
            applications.decode_nodes_to_labels, field(1, field(1, NODE_ID) + field(2, BAD_TEXT)), id="node to labels"
        ),
        pytest.param(framing.decode_response, b"\x08" + b"\x08\x01\x10\x01" + field(4, BAD_TEXT), id="exception"),
    ],
)
def test_a_text_that_is_no_utf8_is_a_violation(decode: Callable[[bytes], object], body: bytes) -> None:
    with pytest.raises(errors.ProtocolViolationError):
        decode(body)


def test_a_state_of_a_later_hadoop_leaves_the_rest_of_the_report() -> None:
    (report,) = NodeReportDecoder().decode(field(1, REPORT + b"\x10\x63"))
    assert (report.node_id.host, report.state.name) == ("nm", "UNHEALTHY")
