# SPDX-License-Identifier: Apache-2.0
"""Measure how fast containers get their limits, and what the agent costs, on the machine's own cgroup tree."""
