# SPDX-License-Identifier: Apache-2.0
"""Find out who waits for capacity, and mark the nodes whose boundary that concerns."""
