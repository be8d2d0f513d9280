# SPDX-License-Identifier: Apache-2.0
"""Reach ResourceManagers over their web services instead of Hadoop RPC."""
