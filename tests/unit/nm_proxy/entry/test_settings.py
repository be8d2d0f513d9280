# SPDX-License-Identifier: Apache-2.0
"""The node side's settings file is read strictly; every mistake is one line with its place."""

from __future__ import annotations

import pytest

from nm_proxy.settings import SCHEMA, NodeSettings
from yarn_copilot.config.fields import defaults_text, setting_fields
from yarn_copilot.config.loading import parse_as
from yarn_copilot.errors import ConfigError


def refused(text: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_as(SCHEMA, text.encode(), "n.yaml", environ or {})
    return str(caught.value)


def test_an_empty_file_and_the_shown_defaults_are_the_same() -> None:
    assert parse_as(SCHEMA, b"", "n.yaml") == NodeSettings()
    assert parse_as(SCHEMA, defaults_text(NodeSettings).encode(), "n.yaml") == NodeSettings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("stop: {grace: 3}", "n.yaml:1: stop.grace: unknown key; allowed in stop: ", id="unknown key"),
        pytest.param("hadop: {}", "unknown key; allowed at the top: capacity, cgroup, ", id="unknown section"),
        pytest.param("stop: {grace_seconds: 30s}", "the unit is in the key's name, write 30", id="unit"),
        pytest.param("parenting: {mode: both}", "must be one of adopt, executor", id="choice"),
        pytest.param("copilot: {allowed_uids: [a]}", "allowed_uids.0: is 'a' but must be a whole number", id="list"),
        pytest.param("cgroup: {hierarchy: x}", "cgroup.hierarchy: hierarchy 'x' must be PARENT/NAME", id="hierarchy"),
        pytest.param("copilot: {kill_token: /t}", "a token must not travel in the clear", id="token without TLS"),
        pytest.param("stop: {grace_seconds: 5}", "stop.node_manager_seconds: is 10 but must be below", id="grace"),
        pytest.param(
            "supervisor: {restart_min_seconds: 100}", "supervisor.restart_min_seconds: is 100 but must", id="back-off"
        ),
        pytest.param("recovery: {enabled: false, keep_on_stop: true}", "nobody would find them again", id="recovery"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    assert said in refused(text)


def test_variables_win_and_lists_are_separated_by_commas() -> None:
    environ = {
        "NM_PROXY_STOP__GRACE_SECONDS": "90",
        "NM_PROXY_COPILOT__ALLOWED_UIDS": "0, 1000",
        "NM_PROXY_NODE_MANAGER__LOCAL_DIRECTORIES": "/a,/b",
        "NM_PROXY_HEALTH__PORT": "",
        "NM_PROXY_CONFIG": "/etc/x",
    }
    found = parse_as(SCHEMA, b"stop: {grace_seconds: 50}", "n.yaml", environ)
    assert found.stop.grace_seconds == 90
    assert found.copilot.allowed_uids == (0, 1000)
    assert found.node_manager.local_directories == ("/a", "/b")
    assert found.health.port is None
    assert "NM_PROXY_STOP__GRACE: stop.grace: unknown key" in refused("", {"NM_PROXY_STOP__GRACE": "1"})


def test_every_key_is_described_with_its_unit() -> None:
    for path, field in setting_fields(NodeSettings).items():
        assert field.description.endswith("."), path
        if path.endswith("_seconds"):
            assert "second" in field.description, path
