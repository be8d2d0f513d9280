# SPDX-License-Identifier: Apache-2.0
"""Give tests and benchmarks a private part of the machine's own cgroup tree."""
