# SPDX-License-Identifier: Apache-2.0
"""Test reading the JSON of the web services."""
