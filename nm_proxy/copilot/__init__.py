# SPDX-License-Identifier: Apache-2.0
"""Serve the node's containers to koordlet or an operator (unix socket) and to the controller (TCP port)."""
