# SPDX-License-Identifier: Apache-2.0
"""Test that each Java exception becomes the right error."""

from __future__ import annotations

import pytest

from yarn_copilot.errors import YarnCopilotError
from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.model import NodeId
from yarn_copilot.hadoop.rest import client as _rest_client  # noqa: F401  (its errors belong to the tree too)

YARN_EXCEPTION = "org.apache.hadoop.yarn.exceptions.YarnException"
UNRECOGNIZED = "Resource update get failed on all nodes due to change resource on an unrecognized node: "


def subclasses(kind: type[errors.HadoopRPCError]) -> list[type[errors.HadoopRPCError]]:
    """List a class and everything below it."""
    return [kind, *(below for child in kind.__subclasses__() for below in subclasses(child))]


@pytest.mark.parametrize(
    ("class_name", "text", "kind"),
    [
        pytest.param(YARN_EXCEPTION, UNRECOGNIZED + "nm-1:8041", errors.UnrecognizedNodeError, id="unrecognized node"),
        pytest.param(
            YARN_EXCEPTION,
            "org.apache.hadoop.security.AccessControlException: User bob doesn't have permission",
            errors.AccessDeniedError,
            id="acl, wrapped",
        ),
        pytest.param(YARN_EXCEPTION, "org.example.OddException: odd", errors.RemoteCallError, id="unknown, wrapped"),
        pytest.param(YARN_EXCEPTION, "plain words", errors.RemoteCallError, id="plain"),
        pytest.param("org.apache.hadoop.ipc.StandbyException", "rm1 is not Active!", errors.StandbyError, id="standby"),
        pytest.param("org.apache.hadoop.ipc.RetriableException", "later", errors.ServerBusyError, id="busy"),
        pytest.param(
            "org.apache.hadoop.security.authorize.AuthorizationException", "no", errors.AccessDeniedError, id="sla"
        ),
        pytest.param("org.apache.hadoop.ipc.RPC$VersionMismatch", "v", errors.UnsupportedCallError, id="version"),
        pytest.param(
            "org.apache.hadoop.ipc.RpcNoSuchMethodException", "m", errors.UnsupportedCallError, id="no such method"
        ),
        pytest.param("java.lang.NullPointerException", "", errors.RemoteCallError, id="not in the table"),
        pytest.param("", "", errors.RemoteCallError, id="nothing said"),
    ],
)
def test_java_class_decides_the_type(class_name: str, text: str, kind: type[errors.RemoteCallError]) -> None:
    error = errors.from_remote_exception(class_name, text + "\n\tat a.B.c(B.java:1)", method="m")

    assert type(error) is kind
    assert error.message == text
    assert "at a.B" not in str(error)


def test_words_in_the_stack_trace_do_not_decide() -> None:
    error = errors.from_remote_exception(YARN_EXCEPTION, "other\n\tat unrecognized node: a:1")
    assert type(error) is errors.RemoteCallError


@pytest.mark.parametrize(
    ("text", "node_id"),
    [
        pytest.param(UNRECOGNIZED + "nm-1.example.com:45454", NodeId("nm-1.example.com", 45454), id="name"),
        pytest.param(UNRECOGNIZED + "x" * 300 + ":1", NodeId("x" * 300, 1), id="longer than the text that is kept"),
        pytest.param(UNRECOGNIZED + "nonsense", None, id="no port"),
        pytest.param(UNRECOGNIZED, None, id="nothing named"),
    ],
)
def test_unrecognized_node_is_named(text: str, node_id: NodeId | None) -> None:
    error = errors.UnrecognizedNodeError(YARN_EXCEPTION, text)
    assert error.node_id == node_id


def test_remote_text_is_cut() -> None:
    error = errors.from_remote_exception("c" * 1000, "m" * 1000)
    assert (len(error.class_name), len(error.message)) == (256, 256)


def test_every_error_has_one_root() -> None:
    assert all(issubclass(kind, YarnCopilotError) for kind in subclasses(errors.HadoopRPCError))


def test_only_errors_after_which_nothing_is_under_way_say_so() -> None:
    assert {kind.__name__ for kind in subclasses(errors.HadoopRPCError) if kind.may_have_been_applied} == {
        "ConnectionLostError",
        "CallTimeoutError",
        "ProtocolViolationError",
        "FrameTooLargeError",
        "TruncatedFrameError",
        "RemoteCallError",
        "PartialUpdateError",
    }
