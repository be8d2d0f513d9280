# SPDX-License-Identifier: Apache-2.0
"""Parse the command line, wire the program, choose the exit code."""
