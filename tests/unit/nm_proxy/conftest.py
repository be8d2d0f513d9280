# SPDX-License-Identifier: Apache-2.0
"""Give tests a node of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from nm_proxy.cgroup.layout import Driver
from tests.unit.nm_proxy.world import Node

KINDS_OF_NODES: Final = (
    ("v1", Driver.CGROUPFS),
    ("v1-joined", Driver.SYSTEMD),
    ("v1-hybrid", Driver.SYSTEMD),
    ("mixed", Driver.CGROUPFS),
    ("v2", Driver.CGROUPFS),
    ("v2", Driver.SYSTEMD),
)


@pytest.fixture(params=KINDS_OF_NODES, ids=lambda one: f"{one[0]}-{one[1].value}")
def any_node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """Give a node of every version and mixture, with either driver."""
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
