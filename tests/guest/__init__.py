# SPDX-License-Identifier: Apache-2.0
"""Test what needs a kernel of its own; `tests/lab/node/test_virtual_machine.py` runs these in a virtual machine."""
