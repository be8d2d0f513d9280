# SPDX-License-Identifier: Apache-2.0
"""Run the suite of operators' calls against the real ResourceManager of the lab."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from tests.contract.hadoop.backend import (
    EXPIRY_SECONDS,
    HEARTBEAT_SECONDS,
    MINIMUM_MEMORY_MIB,
    NODE_MEMORY_MIB,
    NODE_VCORES,
    OPERATOR,
)
from tests.contract.hadoop.suite_operations import *  # noqa: F403
from tests.contract.hadoop.suite_operations import RmOperations
from tests.lab.test_hadoop_contract import RealBackend

pytestmark = pytest.mark.lab


class RealOperations(RmOperations):
    """Be the lab's ResourceManager."""

    def __init__(self, lab: Lab, exclude_file: Path) -> None:
        self.backend = RealBackend(lab)
        self._exclude_file = exclude_file

    def exclude(self, hosts: Collection[str]) -> None:
        self._exclude_file.write_text("".join(f"{host}\n" for host in hosts))


@pytest.fixture(scope="module", params=["3.3.6", "3.5.0"])
def rm_operations(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RmOperations]:
    """Run a ResourceManager with one NodeManager, an exclude file, labels and attributes."""
    folder = tmp_path_factory.mktemp("operations")
    exclude_file = folder / "exclude"
    exclude_file.write_text("")
    options = YarnOptions(
        floor_memory_mib=NODE_MEMORY_MIB,
        floor_vcores=NODE_VCORES,
        minimum_memory_mib=MINIMUM_MEMORY_MIB,
        heartbeat_millis=int(HEARTBEAT_SECONDS * 1000),
        expiry_millis=int(EXPIRY_SECONDS * 1000),
        administrators=OPERATOR,
        properties={
            "yarn.resource-types": "yarn.io/gpu",
            "yarn.resourcemanager.nodes.exclude-path": str(exclude_file),
            "yarn.node-labels.enabled": "true",
            "yarn.node-labels.fs-store.root-dir": f"file://{folder}/labels",
            "yarn.node-attribute.fs-store.root-dir": f"file://{folder}/attributes",
        },
    )
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield RealOperations(lab, exclude_file)
