# SPDX-License-Identifier: Apache-2.0
"""Speak to the program beside a NodeManager over its port `copilot`."""
