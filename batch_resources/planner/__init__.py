# SPDX-License-Identifier: Apache-2.0
"""Decide what each side may have: pure functions from an observation to a plan."""
