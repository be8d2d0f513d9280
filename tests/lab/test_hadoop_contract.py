# SPDX-License-Identifier: Apache-2.0
"""Run the suites of the Hadoop adapter against real ResourceManagers, one lab for each tested version."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.cluster import Lab
from lab.hadoop.options import YarnOptions
from tests.contract.hadoop.backend import (
    EXPIRY_SECONDS,
    GPU,
    HEARTBEAT_SECONDS,
    MINIMUM_MEMORY_MIB,
    NODE_MEMORY_MIB,
    NODE_VCORES,
    OPERATOR,
    RmBackend,
)
from tests.contract.hadoop.suite_capacity import *  # noqa: F403
from tests.contract.hadoop.suite_nodes import *  # noqa: F403
from tests.contract.hadoop.suite_operations import *  # noqa: F403
from tests.contract.hadoop.suite_operations import RmOperations
from tests.contract.hadoop.suite_registrations import *  # noqa: F403
from tests.lab.hadoop_backend import RealBackend, SharedApplication, label_store
from yarn_copilot.hadoop import versions


@dataclass(frozen=True, slots=True)
class VersionLab:
    """Hold what all tests of one version share."""

    lab: Lab
    applications: SharedApplication
    exclude_file: Path


class RealOperations(RmOperations):
    """Be the lab's ResourceManager."""

    def __init__(self, shared: VersionLab) -> None:
        self.backend = RealBackend(shared.lab, shared.applications)
        self._exclude_file = shared.exclude_file

    def exclude(self, hosts: Collection[str]) -> None:
        self._exclude_file.write_text("".join(f"{host}\n" for host in hosts))


@pytest.fixture(scope="module", params=versions.TESTED)
def version_lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VersionLab]:
    """Run a ResourceManager and one NodeManager as the suites expect them, with labels and an exclude file."""
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
            "yarn.resource-types": GPU,
            "yarn.resourcemanager.nodes.exclude-path": str(exclude_file),
            **label_store(folder),
            "yarn.node-attribute.fs-store.root-dir": f"file://{folder}/attributes",
        },
    )
    with Lab(kubernetes=False, node_managers=1, hadoop_version=request.param, yarn_options=options) as lab:
        yield VersionLab(lab, SharedApplication(lab), exclude_file)


@pytest.fixture
def rm_backend(version_lab: VersionLab) -> RmBackend:
    """Give the lab's ResourceManager to the suites."""
    return RealBackend(version_lab.lab, version_lab.applications)


@pytest.fixture
def rm_operations(version_lab: VersionLab) -> RmOperations:
    """Give it to the suite of operators' calls."""
    return RealOperations(version_lab)
