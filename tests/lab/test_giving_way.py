# SPDX-License-Identifier: Apache-2.0
"""Show on real servers who dies when YARN has to give back: nobody in a dip, else the youngest after a warning."""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from lab.cluster import Lab
from lab.hadoop.application import EXIT_PREEMPTED, Application, Container
from tests.lab.bridge import FAST, GIB, SETTLED_SECONDS, Bridge, BridgedNode, Unique, merged

GRACE_SECONDS: Final = 4.0
DEADLINE_SECONDS: Final = 6.0
STAGES: Final[dict[str, Any]] = {
    "capacity": {"giving_way": {"grace_seconds": GRACE_SECONDS, "preemption_timeout_seconds": DEADLINE_SECONDS}}
}


class BusyNode:
    """Hold a node of 20 vcores with 12 in use: an ApplicationMaster, four old containers and seven young ones."""

    def __init__(self, lab: Lab, unique: Unique) -> None:
        self.bridge = Bridge(lab, unique, config=merged(FAST, STAGES))
        self.node: BridgedNode = self.bridge.enroll(0, cpu_milli=20_000, memory_bytes=20 * GIB)
        self.controller = self.bridge.start()
        self.bridge.wait_capacity(self.node, 20_480, 20, seconds=SETTLED_SECONDS)
        # Only this node has room for a master of two gigabytes.
        self.application: Application = lab.submit(managed=True, am_memory_mib=2048, am_vcores=1)
        self.old = self._more(4, of=4)
        self.young = [each for each in self._more(7, of=11) if each not in self.old]
        self.bridge.wait(lambda: self.bridge.used(self.node) == (13 * 1024, 12), "twelve vcores are in use")

    def _more(self, count: int, *, of: int) -> list[Container]:
        self.application.ask(count=count, memory_mib=1024, node=self.node.node_id)
        return self.application.wait_running(of)

    def publish(self, cores: int) -> None:
        """Publish an origin whose memory follows the cores."""
        self.bridge.set_origin(self.node, cores * 1000, cores * GIB)

    def wait_vcores(self, vcores: int) -> None:
        """Wait until the ResourceManager works with so many."""
        self.bridge.wait(lambda: self.bridge.capacity(self.node)[1] == vcores, f"{vcores} vcores are offered")

    def stage(self) -> str:
        """Read the stage from the API."""
        answer = self.controller.get(f"/api/v1/nodes/{self.node.name}").json()
        return str(answer["node"]["node_managers"][0]["giving_way"]["stage"])


@pytest.fixture
def busy(lab: Lab, unique: Unique) -> BusyNode:
    """Make the node busy."""
    return BusyNode(lab, unique)


def test_neither_a_momentary_zero_nor_a_recovery_before_the_deadline_kills_anything(busy: BusyNode) -> None:
    for cores in (20, 0, 20):
        busy.publish(cores)
        busy.wait_vcores(max(cores, 1))
    busy.publish(8)
    busy.application.wait_for(lambda: bool(busy.application.preemption_notices), what="the master is warned")
    busy.bridge.wait(lambda: busy.stage() == "graded", "the stage is graded")
    busy.publish(20)
    busy.wait_vcores(20)
    time.sleep(DEADLINE_SECONDS + 2)
    assert busy.application.killed() == []
    assert len(busy.application.running()) == 11
    assert busy.bridge.used(busy.node) == (13 * 1024, 12)
    assert busy.bridge.events(busy.node, "PreemptionEnded")


def test_a_lasting_fall_kills_the_youngest_after_a_warning_and_no_more_than_needed(busy: BusyNode) -> None:
    # Memory is no bottleneck: 9 GiB hold what eight vcores hold.
    busy.bridge.set_origin(busy.node, 8_000, 20 * GIB)
    began_at = time.monotonic()
    busy.application.wait_for(lambda: bool(busy.application.killed()), what="containers die")
    assert time.monotonic() - began_at >= GRACE_SECONDS + DEADLINE_SECONDS - 1, "they had grace and warning"
    busy.bridge.wait(lambda: busy.bridge.used(busy.node)[1] == 8, "eight vcores are left")
    time.sleep(3)
    killed = busy.application.killed()
    young = {each.id for each in busy.young}
    assert [each.exit_status for each in killed] == [EXIT_PREEMPTED] * 4
    assert {each.id for each in killed} <= young
    assert busy.bridge.used(busy.node)[1] == 8
    assert len(busy.application.running()) == 7
    assert busy.application.errors == [], "the ApplicationMaster survives"
    assert busy.application.preemption_notices
    assert busy.bridge.events(busy.node, "PreemptionDeadlineSet")
    busy.bridge.wait(lambda: busy.stage() == "none", "YARN fits again")
