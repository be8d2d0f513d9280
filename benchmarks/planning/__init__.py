# SPDX-License-Identifier: Apache-2.0
"""Measure what deciding costs: the controller's own views, book, planner and demand, without servers."""
