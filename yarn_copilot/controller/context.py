# SPDX-License-Identifier: Apache-2.0
"""Bundle what every loop of the controller works with."""

from __future__ import annotations

from dataclasses import dataclass

from batch_resources.planner.plan import Planner
from yarn_copilot.controller.book import NodeBook
from yarn_copilot.controller.demand.loop import DemandLoop
from yarn_copilot.controller.dirty import DirtyNodes
from yarn_copilot.controller.gate import WriteGate
from yarn_copilot.controller.ports import Clock
from yarn_copilot.controller.pulse import Pulse
from yarn_copilot.controller.state.nodes import NodeReducer, NodeTable
from yarn_copilot.controller.steps import StepListener
from yarn_copilot.observability.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopContext:
    """Hold the shared state of one controller; made once by `program`, never replaced."""

    book: NodeBook
    nodes: NodeTable
    reduce_node: NodeReducer
    dirty: DirtyNodes
    demand: DemandLoop
    gate: WriteGate
    clock: Clock
    metrics: Metrics
    pulse: Pulse
    decide: Planner
    on_step: StepListener
