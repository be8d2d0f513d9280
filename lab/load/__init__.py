# SPDX-License-Identifier: Apache-2.0
"""Give the online load of nodes over time: a seeded day, a script, or a file."""
