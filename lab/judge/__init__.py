# SPDX-License-Identifier: Apache-2.0
"""Judge, past the product, whether the two schedulers sold a unit of a node twice.

`recording` writes one log of what both did, `judging` goes through it afterwards. Nothing here uses the product's
clients, views or planner.
"""
