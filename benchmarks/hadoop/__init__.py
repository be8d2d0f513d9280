# SPDX-License-Identifier: Apache-2.0
"""Measure the Hadoop client alone: node lists, batches of updates, and calls per second."""
