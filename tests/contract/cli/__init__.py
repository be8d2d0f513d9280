# SPDX-License-Identifier: Apache-2.0
"""Run the whole program as a process against in-process servers."""
