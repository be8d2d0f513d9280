# SPDX-License-Identifier: Apache-2.0
"""Test the Kubernetes adapter against servers that speak HTTP."""

import pytest

pytest.register_assert_rewrite("tests.contract.kube.suite_api", "tests.contract.kube.suite_mirror")
