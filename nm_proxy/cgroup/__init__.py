# SPDX-License-Identifier: Apache-2.0
"""Speak to the kernel's cgroup tree, version 1 and 2, and to nothing else."""
