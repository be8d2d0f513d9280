# SPDX-License-Identifier: Apache-2.0
"""Be the program: `python -m tests.lab.program run --config FILE`, told by two variables what to put in.

PROGRAM_PLANNER names the planner (`static`, `upstream`; unset: the product's), PROGRAM_DEATH the file of `dying`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from batch_resources.planner.plan import plan_node
from tests.lab.program import static, upstream
from tests.lab.program.dying import DyingListener
from yarn_copilot.cli.run import Hooks, run_controller

_PLANNERS = {"": plan_node, "static": static.plan_node, "upstream": upstream.plan_node}


def main(arguments: list[str]) -> int:
    """Run the controller until a signal, or until it dies."""
    assert arguments[:2] == ["run", "--config"]
    listener = DyingListener(Path(os.environ.get("PROGRAM_DEATH", "/nonexistent")))
    hooks = Hooks(decide=_PLANNERS[os.environ.get("PROGRAM_PLANNER", "")], on_step=listener)
    return run_controller(Path(arguments[2]), environ=os.environ, hooks=hooks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
