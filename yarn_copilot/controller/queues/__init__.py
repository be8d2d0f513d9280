# SPDX-License-Identifier: Apache-2.0
"""Read queue figures for people, metrics and, later, as demand."""
