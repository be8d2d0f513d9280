# SPDX-License-Identifier: Apache-2.0
"""Test `controller.state`."""
