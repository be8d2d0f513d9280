# SPDX-License-Identifier: Apache-2.0
"""Measure the product on real servers; figures go to `benchmarks/results/<name>.json`."""
