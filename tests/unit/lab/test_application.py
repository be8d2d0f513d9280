# SPDX-License-Identifier: Apache-2.0
"""Which ends of containers were against their application's will."""

from __future__ import annotations

import pytest

from lab.hadoop.application import EXIT_ABORTED, EXIT_PREEMPTED, Container


@pytest.mark.parametrize(
    ("exit_status", "diagnostics", "taken_away"),
    [
        pytest.param(None, "", False, id="lives"),
        pytest.param(0, "", False, id="ended by itself"),
        pytest.param(137, "Killed by external signal", True, id="killed on the node"),
        pytest.param(EXIT_PREEMPTED, "Container preempted by scheduler", True, id="preempted"),
        pytest.param(EXIT_ABORTED, "Container released by application", False, id="given back"),
        pytest.param(EXIT_ABORTED, "Container of a completed application", False, id="application finished"),
        pytest.param(EXIT_ABORTED, "Container released on a *lost* node", True, id="lost with its node"),
        pytest.param(EXIT_ABORTED, "", True, id="for no reason given"),
    ],
)
def test_tells_what_was_taken_away(exit_status: int | None, diagnostics: str, *, taken_away: bool) -> None:
    container = Container(
        id="container_1_0001_01_000002", ask=1, queue="root.default", node="n:1", memory_mib=256, vcores=1,
        exit_status=exit_status, diagnostics=diagnostics,
    )  # fmt: skip
    assert container.was_taken_away is taken_away
