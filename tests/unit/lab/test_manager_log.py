# SPDX-License-Identifier: Apache-2.0
"""Times and totals are read from a ResourceManager's log as it writes them."""

from __future__ import annotations

import pytest

from lab.errors import LabError
from lab.hadoop.manager_log import FirstUpdate, ManagerLog

NODE = "nm-1.lab.internal:8041"
UPDATE = "USER=yarn\tIP=127.0.0.1\tOPERATION=updateNodeResource\tTARGET=AdminService\tRESULT=SUCCESS"
REFUSED = (
    "IPC Server handler 0 on 8033, call ResourceManagerAdministrationProtocolPB.updateNodeResource from 127.0.0.1:1"
)
BECOMES = "resourcemanager.ResourceManager: Transitioning to active state"
ACTIVE = "resourcemanager.ResourceManager: Transitioned to active state"


def registered(node: str = NODE) -> str:
    """Give the line of a registration."""
    return (
        f"NodeManager from node {node.partition(':')[0]}(cmPort: 8041 httpPort: 8042) registered with capability: "
        f"<memory:1024, vCores:1>, assigned nodeId {node}"
    )


def applied(memory_mib: int, node: str = NODE) -> str:
    """Give the line of a new total."""
    total = f"<memory:{memory_mib}, vCores:2>"
    return f"AbstractYarnScheduler: Update resource on node: {node} from: <memory:1, vCores:1>, to: {total} in 9 ms"


def log(*lines: tuple[int, str]) -> ManagerLog:
    """Give a log of lines with the milliseconds of their time."""
    text = "\n".join(
        f"2026-01-02 03:04:{10 + milli // 1000:02d},{milli % 1000:03d} INFO {line}" for milli, line in lines
    )
    return ManagerLog("rm1", f"{text}\n\tat a stack trace\n")


def test_first_events_after_the_last_change_to_active_are_timed() -> None:
    found = log(
        (0, BECOMES), (10, ACTIVE), (20, registered()), (30, UPDATE),
        (5000, BECOMES), (5100, ACTIVE), (5150, REFUSED), (5300, registered("other:1")), (5400, registered()),
        (5450, UPDATE), (5500, UPDATE),
    ).first_update(NODE)  # fmt: skip
    assert found == FirstUpdate(reached=0.05, registered=0.3, accepted=0.35)
    assert found.after_registration == pytest.approx(0.05)


def test_registration_before_the_end_of_the_change_costs_the_sender_nothing() -> None:
    found = log((0, BECOMES), (50, registered()), (100, ACTIVE), (130, UPDATE)).first_update(NODE)
    assert (found.registered, found.accepted, found.after_registration) == (-0.05, 0.03, 0.03)


@pytest.mark.parametrize(
    "lines", [[], [(0, BECOMES), (1, ACTIVE), (2, registered())], [(2, registered()), (3, UPDATE)]]
)
def test_log_without_a_change_or_an_update_is_an_error(lines: list[tuple[int, str]]) -> None:
    with pytest.raises(LabError, match="rm1 became active"):
        log(*lines).first_update(NODE)


def test_totals_come_in_their_order_and_updates_are_counted() -> None:
    found = log((0, UPDATE), (1, applied(2048)), (2, applied(9, "other:1")), (3, REFUSED), (4, applied(2047)))
    assert [memory_mib for _, memory_mib in found.applied_memory(NODE)] == [2048, 2047]
    assert found.accepted_updates() == 1
