# SPDX-License-Identifier: Apache-2.0
"""Test the REST side of the Hadoop adapter."""
