# SPDX-License-Identifier: Apache-2.0
"""Render the NodeManager's configuration from the operator's files and this program's settings."""
