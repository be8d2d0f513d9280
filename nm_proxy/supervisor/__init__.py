# SPDX-License-Identifier: Apache-2.0
"""Keep a NodeManager running: `init` as PID 1, below it the supervisor, which also runs the agent."""
