# SPDX-License-Identifier: Apache-2.0
"""Measure the product; figures go to benchmarks/results."""
