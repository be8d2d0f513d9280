# SPDX-License-Identifier: Apache-2.0
"""Run the controller with another planner, or so that it dies at a step of a transfer."""
