# SPDX-License-Identifier: Apache-2.0
"""Test the entry point: settings, rendering, preflight, supervisor."""
