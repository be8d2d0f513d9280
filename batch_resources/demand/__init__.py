# SPDX-License-Identifier: Apache-2.0
"""Work out who waits for capacity where: which nodes a pending pod fits, and on which one it is served."""
