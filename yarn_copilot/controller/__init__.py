# SPDX-License-Identifier: Apache-2.0
"""Run the loops that keep Kubernetes and YARN consistent."""
