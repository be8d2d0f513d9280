# SPDX-License-Identifier: Apache-2.0
"""Run the suites of the Kubernetes adapter against the real API server of the lab."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lab.cluster import Lab
from tests.contract.kube.backend import KubeBackend
from tests.contract.kube.suite_api import *  # noqa: F403
from tests.contract.kube.suite_mirror import *  # noqa: F403


@pytest.fixture
async def kube_backend(lab: Lab) -> AsyncIterator[KubeBackend]:
    """Give the lab's API server to the suites."""
    control_plane = lab.kubernetes
    async with KubeBackend(control_plane.url, control_plane.admin_token, control_plane.ca_file) as backend:
        yield backend
