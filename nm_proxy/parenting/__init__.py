# SPDX-License-Identifier: Apache-2.0
"""Keep every YARN container in its own cgroup below Koordinator's best-effort directory, with its limits in force."""
