# SPDX-License-Identifier: Apache-2.0
"""Give tests a node of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from nm_proxy.cgroup.layout import Driver
from tests.unit.nm_proxy.world import KINDS, Node


@pytest.fixture(
    params=[(kind, driver) for kind in KINDS for driver in Driver], ids=lambda one: f"{one[0]}-{one[1].value}"
)
def any_node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """Give a node of every version, mixture and driver."""
    kind, driver = request.param
    return Node(tmp_path, kind=kind, driver=driver)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Give a node with version 1 and cgroupfs."""
    return Node(tmp_path)


@pytest.fixture
def v2_node(tmp_path: Path) -> Node:
    """Give a node with version 2 and systemd."""
    return Node(tmp_path, kind="v2", driver=Driver.SYSTEMD)
