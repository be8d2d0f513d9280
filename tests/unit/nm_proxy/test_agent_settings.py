# SPDX-License-Identifier: Apache-2.0
"""Test the settings of the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from nm_proxy.agent_settings import AgentSettings, ParentingMode
from nm_proxy.cgroup.layout import Driver


def test_everything_has_a_default() -> None:
    settings = AgentSettings()
    assert settings.cgroup.root == Path("/sys/fs/cgroup")
    assert settings.copilot.socket == Path("/var/run/yarn-copilot/yarn-copilot.sock")
    assert settings.copilot.port is None
    assert settings.parenting.interval_seconds < 1


def test_reads_a_document() -> None:
    settings = AgentSettings.model_validate(
        {
            "cgroup": {"root": "/host-cgroup", "driver": "systemd", "hierarchy": "/kubelet/be/hadoop-yarn/"},
            "parenting": {"mode": "executor", "owner_uid": 1001},
            "node_manager": {"local_directories": ["/a", "/b"]},
            "copilot": {"port": 0, "allowed_uids": [0, 7], "socket": None},
        }
    )
    assert settings.cgroup.driver is Driver.SYSTEMD
    assert settings.cgroup.hierarchy == "kubelet/be/hadoop-yarn"
    assert settings.parenting.mode is ParentingMode.EXECUTOR
    assert settings.copilot.allowed_uids == (0, 7)


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"cgroups": {}}, "Extra inputs"),
        ({"cgroup": {"driver": "openrc"}}, "systemd"),
        ({"cgroup": {"hierarchy": "../x"}}, "hierarchy"),
        ({"node_manager": {"url": "nm:8042"}}, "pattern"),
        ({"node_manager": {"local_directories": []}}, "at least 1"),
        ({"parenting": {"memory_wall_bytes": 1}}, "greater than"),
        ({"copilot": {"tls_certificate": "/c"}}, "belong together"),
        ({"copilot": {"kill_token": "/t"}}, "in the clear"),
    ],
)
def test_refuses(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        AgentSettings.model_validate(document)


def test_every_field_is_described() -> None:
    for name, section in AgentSettings.model_fields.items():
        model = section.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        for field, info in model.model_fields.items():
            assert info.description, f"{name}.{field}"
