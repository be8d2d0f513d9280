# SPDX-License-Identifier: Apache-2.0
"""Measure the controller with thousands of nodes; `python -m benchmarks.scale --help`."""
