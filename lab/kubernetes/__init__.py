# SPDX-License-Identifier: Apache-2.0
"""Run etcd, kube-apiserver and kube-scheduler on loopback, and make the objects that tests need."""
