# SPDX-License-Identifier: Apache-2.0
"""Run the suites against the embedded API server; `tests/lab` runs them against a real one."""

from tests.contract.kube.suite_api import *  # noqa: F403
from tests.contract.kube.suite_mirror import *  # noqa: F403
