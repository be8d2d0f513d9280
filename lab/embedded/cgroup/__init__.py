# SPDX-License-Identifier: Apache-2.0
"""Be a kernel's cgroup tree and process table in a temporary directory, for tests of the node side."""
