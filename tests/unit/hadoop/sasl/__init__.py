# SPDX-License-Identifier: Apache-2.0
"""Test the bytes of Hadoop RPC, its configuration files and errors."""
