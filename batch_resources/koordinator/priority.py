# SPDX-License-Identifier: Apache-2.0
"""Tell which priority and QoS class Koordinator gives a pod.

Batch capacity is what high-priority work leaves over, so the only question asked of a class is whether it is high.
Source: Koordinator 1.8, apis/extension/{priority,priority_utils,qos_utils}.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

PRIORITY_CLASS_LABEL = "koordinator.sh/priority-class"
QOS_CLASS_LABEL = "koordinator.sh/qosClass"


class PriorityClass(StrEnum):
    """Name Koordinator's priority classes; the empty text is "none"."""

    PROD = "koord-prod"
    MID = "koord-mid"
    BATCH = "koord-batch"
    FREE = "koord-free"
    NONE = ""

    @property
    def is_high(self) -> bool:
        """Tell whether pods of this class take precedence over batch work; "none" does."""
        return self not in (PriorityClass.BATCH, PriorityClass.FREE)


class QosClass(StrEnum):
    """Name Koordinator's QoS classes; the empty text is "none"."""

    LSE = "LSE"
    LSR = "LSR"
    LS = "LS"
    BE = "BE"
    SYSTEM = "SYSTEM"
    NONE = ""


class KubernetesQos(StrEnum):
    """Name the QoS classes that Kubernetes derives from requests and limits (`status.qosClass`)."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


_QOS_OF_KUBERNETES = {
    KubernetesQos.GUARANTEED: QosClass.LSR,
    KubernetesQos.BURSTABLE: QosClass.LS,
    KubernetesQos.BEST_EFFORT: QosClass.BE,
}
_RANGES = (
    (9000, 9999, PriorityClass.PROD),
    (7000, 7999, PriorityClass.MID),
    (5000, 5999, PriorityClass.BATCH),
    (3000, 3999, PriorityClass.FREE),
)


def priority_class_or_none(text: str | None) -> PriorityClass:
    """Read a class by its name; anything that is no class is "none"."""
    try:
        return PriorityClass(text or "")
    except ValueError:
        return PriorityClass.NONE


def qos_class(labels: Mapping[str, str], kubernetes_qos: KubernetesQos) -> QosClass:
    """Give a pod's QoS class: its label where present, else what Kubernetes derived."""
    if QOS_CLASS_LABEL not in labels:
        return _QOS_OF_KUBERNETES[kubernetes_qos]
    try:
        return QosClass(labels[QOS_CLASS_LABEL])
    except ValueError:
        return QosClass.NONE


def priority_class(labels: Mapping[str, str], priority: int | None, qos: QosClass) -> PriorityClass:
    """Give a pod's priority class.

    Args:
        labels: Labels of the pod; the class label decides when it is there.
        priority: `spec.priority`; a number outside Koordinator's four ranges says nothing.
        qos: The pod's QoS class, the last resort: BE is batch, every named class else is prod.
    """
    if PRIORITY_CLASS_LABEL in labels:
        return priority_class_or_none(labels[PRIORITY_CLASS_LABEL])
    for low, high, name in _RANGES:
        if priority is not None and low <= priority <= high:
            return name
    if qos is QosClass.NONE:
        return PriorityClass.NONE
    return PriorityClass.BATCH if qos is QosClass.BE else PriorityClass.PROD
