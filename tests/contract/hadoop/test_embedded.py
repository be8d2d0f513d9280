# SPDX-License-Identifier: Apache-2.0
"""Run the suites against the embedded ResourceManager; `tests/lab` runs them against a real one."""

from tests.contract.hadoop.suite_capacity import *  # noqa: F403
from tests.contract.hadoop.suite_nodes import *  # noqa: F403
from tests.contract.hadoop.suite_registrations import *  # noqa: F403
