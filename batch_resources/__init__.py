# SPDX-License-Identifier: Apache-2.0
"""Compute who may have what of a node's idle capacity: pure functions and values, no I/O."""
