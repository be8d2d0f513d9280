# SPDX-License-Identifier: Apache-2.0
"""Test the Hadoop client against ResourceManagers: the embedded one, and the real one where the lab runs."""
