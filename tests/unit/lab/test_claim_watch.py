# SPDX-License-Identifier: Apache-2.0
"""Test the judge of claim histories: it must find a claim that fell below what ran, and no other."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest

from lab.hadoop.application import Application, Container
from tests.lab.bridge import GIB, BridgedNode, Claim
from tests.lab.watching import ClaimVersion, ContainerTruth, claims_below_use

NODE_ID = "nm-1.lab.internal:1"


class Manager:
    """Look like a NodeManager of the lab."""

    node_id = NODE_ID


class Holder:
    """Look like an application that holds containers."""

    def __init__(self, count: int) -> None:
        self.containers = [
            Container(id=f"c{n}", ask=1, queue="root", node=NODE_ID, memory_mib=1024, vcores=1, is_running=True)
            for n in range(count)
        ]

    def running(self) -> list[Container]:
        """List what runs."""
        return list(self.containers)

    def release_container(self, container: Container) -> None:
        """Give one back."""
        self.containers.remove(container)


NODE = BridgedNode("node", cast(Any, Manager()))


def _claim(vcores: int) -> Claim:
    return Claim(vcores * 1000, vcores * GIB)


def _history(*steps: tuple[float, Claim | None]) -> list[ClaimVersion]:
    return [ClaimVersion(at, number, claim) for number, (at, claim) in enumerate(steps)]


@pytest.mark.parametrize(
    ("later", "faults"),
    [
        pytest.param(_claim(3), 0, id="equal to use"),
        pytest.param(_claim(4), 0, id="above"),
        pytest.param(_claim(1), 1, id="the floor while three run"),
        pytest.param(Claim(3000, GIB), 1, id="memory alone too low"),
        pytest.param(Claim(1000, 3 * GIB), 1, id="cpu alone too low"),
        pytest.param(None, 1, id="entry removed"),
    ],
)
def test_claim_below_what_ran_all_the_time_is_a_fault(later: Claim | None, faults: int) -> None:
    with ContainerTruth(cast(Application, Holder(3))) as truth:
        now = time.monotonic()
        history = _history((now + 10, _claim(3)), (now + 20, later))
        assert len(claims_below_use(history, truth, NODE, lag_seconds=1.0)) == faults


def test_claim_may_fall_to_what_is_left_after_a_release_and_no_further() -> None:
    holder = Holder(3)
    with ContainerTruth(cast(Application, holder)) as truth:
        truth.release(truth.held()[:1])
        now = time.monotonic()
        for left, faults in ((2, 0), (1, 1)):
            history = _history((now + 10, _claim(3)), (now + 20, _claim(left)))
            assert len(claims_below_use(history, truth, NODE, lag_seconds=1.0)) == faults


def test_claim_that_is_late_to_rise_is_no_fault() -> None:
    before = time.monotonic()
    holder = Holder(0)
    with ContainerTruth(cast(Application, holder)) as truth:
        holder.containers = Holder(3).containers
        while len(truth.held()) < 3:
            time.sleep(0.001)
        now = time.monotonic()
        history = _history((before, _claim(1)), (now + 10, _claim(2)))
        assert claims_below_use(history, truth, NODE, lag_seconds=0.0) == []
