# SPDX-License-Identifier: Apache-2.0
"""Write requests of the operators' calls field by field and read their answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from yarn_copilot.hadoop import errors
from yarn_copilot.hadoop.model import (
    ApplicationState,
    AttributeOperation,
    DecommissionType,
    HAServiceState,
    NodeAttribute,
    NodeId,
    Resource,
    ServiceStatus,
)
from yarn_copilot.hadoop.protocols import applications, delegation, ha_service, operations


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        pytest.param(operations.encode_refresh_nodes(DecommissionType.NORMAL), "0801", id="refresh, normal"),
        pytest.param(operations.encode_refresh_nodes(DecommissionType.GRACEFUL), "0802", id="refresh, graceful"),
        pytest.param(
            operations.encode_refresh_nodes(DecommissionType.GRACEFUL, timeout_seconds=300), "080210ac02", id="timeout"
        ),
        pytest.param(
            operations.encode_refresh_nodes(DecommissionType.GRACEFUL, timeout_seconds=-1),
            "080210ffffffffffffffffff01",
            id="for ever",
        ),
        pytest.param(operations.encode_check_for_decommissioning_nodes(), "", id="decommissioning nodes"),
        pytest.param(
            operations.encode_replace_labels({NodeId("n", 1): ["x"]}), "0a0a0a050a016e1001120178" + "1001", id="labels"
        ),
        pytest.param(
            operations.encode_map_attributes(
                AttributeOperation.ADD, {"n": [NodeAttribute("a", "v")]}, fail_on_unknown_nodes=False
            ),
            "0802"
            + "121b"
            + "0a016e"
            + "1216"
            + "0a0f"
            + "0a0a"
            + b"rm.yarn.io".hex()
            + "120161"
            + "1001"
            + "1a0176"
            + "1800",
            id="attributes",
        ),
        pytest.param(applications.encode_get_applications(), "", id="all applications"),
        pytest.param(
            applications.encode_get_applications(
                states=[ApplicationState.RUNNING, ApplicationState.ACCEPTED], queues=["q"], limit=5
            ),
            "10051004" + "220171" + "2805",
            id="some applications",
        ),
        pytest.param(ha_service.encode_get_service_status(), "", id="service status"),
        pytest.param(delegation.encode_get_delegation_token("yarn"), "0a047961726e", id="delegation token"),
    ],
)
def test_request_has_these_bytes(request_bytes: bytes, expected: str) -> None:
    assert request_bytes.hex() == expected


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: operations.encode_refresh_nodes(DecommissionType.NORMAL, timeout_seconds=1), id="no wait"),
        pytest.param(
            lambda: operations.encode_refresh_nodes(DecommissionType.GRACEFUL, timeout_seconds=-2), id="too small"
        ),
        pytest.param(
            lambda: operations.encode_refresh_nodes(DecommissionType.GRACEFUL, timeout_seconds=1 << 31), id="too large"
        ),
        pytest.param(lambda: applications.encode_get_applications(limit=0), id="limit"),
    ],
)
def test_request_that_makes_no_sense_is_refused(make: Callable[[], bytes]) -> None:
    with pytest.raises(ValueError, match=r"timeout|limit"):
        make()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("08011001", ServiceStatus(HAServiceState.ACTIVE, True)),
        ("080210001a026e6f", ServiceStatus(HAServiceState.STANDBY, False, "no")),
        ("0809", ServiceStatus(HAServiceState.UNKNOWN, False)),
    ],
)
def test_service_status_is_read(body: str, status: ServiceStatus) -> None:
    assert ha_service.decode_service_status(bytes.fromhex(body)) == status


def test_application_is_read() -> None:
    usage = "7208" + "0803" + "1a04" + "08051002"
    report = "0a040807100a" + "1205616c696365" + "1a0171" + "22016e" + "4005" + "5864" + usage + "9201025452"
    body = bytes.fromhex("0a" + f"{len(report) // 2:02x}" + report)
    (application,) = applications.decode_applications(body)
    assert application.id == "application_10_0007"
    assert (application.user, application.queue, application.name, application.type) == ("alice", "q", "n", "TR")
    assert application.state is ApplicationState.RUNNING
    assert not application.state.is_final
    assert (application.start_millis, application.finish_millis) == (100, 0)
    assert (application.containers, application.used, application.reserved) == (3, Resource(5, 2), Resource(0, 0))


@pytest.mark.parametrize(
    ("body", "state"),
    [("0a080a04080710 0a4063", ApplicationState.UNKNOWN), ("0a060a040807100a", ApplicationState.UNKNOWN)],
)
def test_application_of_an_unknown_state_is_still_listed(body: str, state: ApplicationState) -> None:
    assert applications.decode_applications(bytes.fromhex(body))[0].state is state


def test_application_that_may_not_be_seen_uses_nothing() -> None:
    body = bytes.fromhex("0a13" + "0a040807100a" + "720b" + "08ffffffffffffffffff01")
    assert applications.decode_applications(body)[0].containers == 0


def test_nodes_are_read() -> None:
    node = "0a050a016e1001"
    labels = bytes.fromhex("0a0d" + node + "120179" + "120178")
    assert applications.decode_nodes_to_labels(labels) == {NodeId("n", 1): ("x", "y")}
    assert operations.decode_decommissioning_nodes(bytes.fromhex(node)) == {NodeId("n", 1)}


def test_delegation_token_is_read() -> None:
    token = delegation.decode_delegation_token(bytes.fromhex("0a0c" + "0a0169" + "120170" + "1a016b" + "220173"))
    assert (token.identifier, token.password, token.kind, token.service) == (b"i", b"p", "k", "s")


@pytest.mark.parametrize(
    "decode",
    [
        pytest.param(lambda: applications.decode_applications(b"\x0a\x00"), id="application without id"),
        pytest.param(lambda: applications.decode_applications(b"\x0a\xff"), id="applications cut"),
        pytest.param(lambda: applications.decode_nodes_to_labels(b"\xff"), id="labels"),
        pytest.param(lambda: operations.decode_decommissioning_nodes(b"\x0a"), id="nodes"),
        pytest.param(lambda: ha_service.decode_service_status(b"\xff"), id="status"),
        pytest.param(lambda: delegation.decode_delegation_token(b""), id="no token"),
        pytest.param(lambda: delegation.decode_delegation_token(b"\x0a\x03\x0a\x01i"), id="token without password"),
    ],
)
def test_answer_that_does_not_decode_is_a_violation(decode: Callable[[], object]) -> None:
    with pytest.raises(errors.ProtocolViolationError):
        decode()
