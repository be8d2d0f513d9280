# SPDX-License-Identifier: Apache-2.0
"""Join the parts into the program `nm-proxy`: parse, build, run, exit code."""
