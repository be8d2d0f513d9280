# SPDX-License-Identifier: Apache-2.0
"""Serve health, metrics and the read-only API of the controller over HTTP."""
