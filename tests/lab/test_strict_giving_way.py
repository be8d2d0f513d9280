# SPDX-License-Identifier: Apache-2.0
"""Show on real servers who dies in mode strict: nobody in a dip, else the youngest, as many as needed and no more."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from lab.cluster import Lab
from lab.hadoop.application import EXIT_PREEMPTED
from tests.lab.bridge import Unique
from tests.lab.strict_busy import CORES, IN_USE, busy_node

GRACE_SECONDS: Final = 4.0
DEADLINE_SECONDS: Final = 4.0
STAGES: Final[dict[str, Any]] = {
    "capacity": {"giving_way": {"grace_seconds": GRACE_SECONDS, "preemption_timeout_seconds": DEADLINE_SECONDS}}
}
_LEFT: Final = 8


@pytest.mark.timeout(400)
def test_a_dip_kills_nothing_and_a_lasting_fall_the_youngest_and_no_more_than_needed(lab: Lab, unique: Unique) -> None:
    with busy_node(lab, unique, STAGES) as busy:
        bridge, application = busy.found.bridge, busy.application
        busy.publish(0)
        busy.wait_seen(0)
        busy.wait_vcores(IN_USE)  # a zero is doubted: what is in use stays, and nothing grows
        busy.publish(CORES)
        busy.wait_seen(CORES)
        assert application.killed() == []
        assert busy.used_vcores() == IN_USE

        began_at = time.monotonic()
        busy.publish(_LEFT)
        application.wait_for(lambda: bool(application.killed()), what="containers die")
        assert time.monotonic() - began_at >= GRACE_SECONDS + DEADLINE_SECONDS - 1, "they had grace and warning"
        bridge.wait(lambda: busy.used_vcores() == _LEFT, f"{_LEFT} vcores are left")
        bridge.wait(lambda: busy.stage() == "none", "YARN fits again")
        killed = application.killed()
        assert [each.exit_status for each in killed] == [EXIT_PREEMPTED] * (IN_USE - _LEFT)
        assert {each.id for each in killed} == {each.id for each in busy.young[_LEFT - IN_USE :]}
        assert busy.used_vcores() == _LEFT
        assert len(application.running()) == _LEFT - 1
        assert application.errors == [], "the ApplicationMaster survives"
        assert application.preemption_notices
        assert bridge.events(busy.node, "PreemptionDeadlineSet")
        verdict = busy.found.recording.verdict()
    assert busy.found.recording.problems == []
    assert (verdict.violations, verdict.claims_below_use) == ((), ())
