# SPDX-License-Identifier: Apache-2.0
"""Test the node side without kernel and NodeManager."""
