# SPDX-License-Identifier: Apache-2.0
"""Run tests in a virtual machine with a kernel and a cgroup tree of its own (QEMU, without hardware support)."""
