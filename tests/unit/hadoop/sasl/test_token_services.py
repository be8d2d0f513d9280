# SPDX-License-Identifier: Apache-2.0
"""The token of a cluster is told from others by its service, in either form that Hadoop writes."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from yarn_copilot.hadoop.addresses import Address
from yarn_copilot.hadoop.sasl.token_services import fitting_tokens, look_up_for
from yarn_copilot.hadoop.sasl.tokens import RM_TOKEN_KIND, DelegationToken

PAIR = (Address("rm1", 8032), Address("RM2.example", 8032))
BY_IP = {"rm1": ["10.0.0.1"], "RM2.example": ["10.0.0.2", "fd00::2"]}
BY_NAME = {"rm1": ["rm1.example"], "RM2.example": ["rm2.example"]}


def token(service: str) -> DelegationToken:
    return DelegationToken(service.encode(), b"secret", RM_TOKEN_KIND, service)


def chosen(services: Iterable[str], names: dict[str, list[str]]) -> list[str]:
    found = fitting_tokens(map(token, services), PAIR, lambda host: names.get(host, []))
    return [each.service for each in found]


OTHERS = ("10.0.0.9:8032", "other.example:8032", "10.0.0.1:8033", "10.0.0.11:8032", "")


@pytest.mark.parametrize(
    ("names", "service"),
    [
        pytest.param(BY_IP, "10.0.0.1:8032", id="IP address of one"),
        pytest.param(BY_IP, "10.0.0.1:8032,10.0.0.2:8032", id="IP addresses of a pair"),
        pytest.param(BY_IP, "10.0.0.8:8032,10.0.0.2:8032", id="IP address of one that has moved, and of the other"),
        pytest.param(BY_IP, "fd00:0:0:0:0:0:0:2:8032", id="IPv6 as Java writes it"),
        pytest.param(BY_IP, "[fd00::2]:8032", id="IPv6 in brackets"),
        pytest.param(BY_IP, "rm1:8032", id="as written"),
        pytest.param(BY_NAME, "rm1.example:8032,rm2.example:8032", id="full names of a pair"),
        pytest.param(BY_NAME, "rm2.example:8032", id="written with capitals"),
        pytest.param({}, "rm1:8032", id="a name that cannot be resolved"),
    ],
)
def test_the_clusters_token_is_found_among_others(names: dict[str, list[str]], service: str) -> None:
    assert chosen((*OTHERS, service), names) == [service]


def test_no_token_of_another_cluster_is_taken() -> None:
    assert chosen(OTHERS, BY_IP) == []
    assert chosen(("10.0.0.1:8032",), BY_NAME) == []
    assert chosen(("rm1.example:8032",), BY_IP) == []


def test_the_form_that_the_files_ask_for_wins_over_the_written_one() -> None:
    assert chosen(("rm1:8032", "10.0.0.1:8032"), BY_IP) == ["10.0.0.1:8032"]
    assert chosen(("10.0.0.1:8032", "10.0.0.2:8032"), BY_IP) == ["10.0.0.1:8032", "10.0.0.2:8032"]


def test_names_are_looked_up_as_the_files_ask() -> None:
    assert "127.0.0.1" in look_up_for(uses_ip=True)("127.0.0.1")
    assert "127.0.0.1" in look_up_for(uses_ip=True)("localhost")
    assert "127.0.0.1" not in look_up_for(uses_ip=False)("localhost")


@pytest.mark.parametrize("uses_ip", [True, False])
@pytest.mark.parametrize("host", [pytest.param("a" * 70, id="too long"), pytest.param("", id="no host")])
def test_a_host_that_cannot_be_looked_up_has_no_names(host: str, uses_ip: bool) -> None:
    assert list(look_up_for(uses_ip=uses_ip)(host)) == []
