# SPDX-License-Identifier: Apache-2.0
"""Run a YARN ResourceManager, NodeManagers and a real application on loopback."""
