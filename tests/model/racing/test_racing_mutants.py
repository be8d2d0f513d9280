# SPDX-License-Identifier: Apache-2.0
"""The race catches a controller that lacks a rule: the search with real quantities is not blind.

Which rules are needed at all is shown by the search over small worlds; here it is enough that those whose loss shows
soonest are missed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from batch_resources.planner import strict, strict_rules
from batch_resources.planner.strict_amounts import NodeAmounts
from tests.model.racing.judge import SoldTwiceError
from tests.model.racing.machine import Racing

EXAMPLES = settings(
    max_examples=300,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda node: replace(node, is_settled=True), id="does not settle"),
        pytest.param(lambda node: replace(node, allocatable=0), id="does not wait for publication"),
    ],
)
def test_a_controller_without_the_rule_is_caught(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[NodeAmounts], NodeAmounts]
) -> None:
    real = strict_rules.decide
    monkeypatch.setattr(strict, "decide", lambda node: real(change(node)))
    with pytest.raises(SoldTwiceError):
        run_state_machine_as_test(Racing, settings=EXAMPLES)
