# SPDX-License-Identifier: Apache-2.0
"""Run a real cluster on loopback for tests, benchmarks and the demo; never shipped."""
