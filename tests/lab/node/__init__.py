# SPDX-License-Identifier: Apache-2.0
"""Test the node side on the machine's own cgroup tree, with real processes."""
