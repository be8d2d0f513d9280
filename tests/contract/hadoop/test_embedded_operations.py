# SPDX-License-Identifier: Apache-2.0
"""Run the suite of operators' calls against the embedded ResourceManager."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.contract.hadoop.backend import EmbeddedBackend, RmBackend
from tests.contract.hadoop.suite_operations import *  # noqa: F403
from tests.contract.hadoop.suite_operations import RmOperations


class EmbeddedOperations(RmOperations):
    """Be the embedded one."""

    def __init__(self, backend: EmbeddedBackend) -> None:
        self.backend = backend
        self._yarn = backend.yarn

    def exclude(self, hosts: Collection[str]) -> None:
        self._yarn.register.excluded = set(hosts)


@pytest.fixture
def rm_operations(rm_backend: RmBackend) -> RmOperations:
    """Give the embedded ResourceManager to the suite."""
    assert isinstance(rm_backend, EmbeddedBackend)
    return EmbeddedOperations(rm_backend)
