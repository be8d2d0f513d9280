# SPDX-License-Identifier: Apache-2.0
"""Stand in for Koordinator: koordlet's reports and koord-manager's batch resources, by the same rules.

The two halves meet only in the API server, as the real ones do: `koordlet` writes NodeMetric objects, `manager`
watches them and the Nodes and publishes. Nothing of the product's Kubernetes client is used, so that the product is
never tested against itself; only the pure formula of `batch_resources.koordinator` is shared.
"""
