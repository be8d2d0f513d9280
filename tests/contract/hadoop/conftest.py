# SPDX-License-Identifier: Apache-2.0
"""Start embedded YARN clusters for the tests of the Hadoop adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lab.embedded.yarn import EmbeddedYarn, EmbeddedYarnOptions, Rules
from tests.contract.hadoop.backend import (
    EXPIRY_SECONDS,
    GPU,
    HEARTBEAT_SECONDS,
    MINIMUM_MEMORY_MIB,
    OPERATOR,
    EmbeddedBackend,
    RmBackend,
)


@pytest.fixture
async def rm_backend(tmp_path: Path) -> AsyncIterator[RmBackend]:
    """Give the embedded ResourceManager to the suites that also run against a real one."""
    options = EmbeddedYarnOptions(
        heartbeat_seconds=HEARTBEAT_SECONDS,
        rules=Rules(minimum_memory_mib=MINIMUM_MEMORY_MIB, expiry_seconds=EXPIRY_SECONDS, custom_types=(GPU,)),
        admins=frozenset((OPERATOR,)),
    )
    async with EmbeddedYarn(options) as yarn:
        yield EmbeddedBackend(yarn, tmp_path)
