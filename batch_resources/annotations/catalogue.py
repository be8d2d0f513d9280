# SPDX-License-Identifier: Apache-2.0
"""List every annotation that the bridge reads or writes, once: who writes it, what may stand in it, what it means.

The page docs/annotations.md is made from this table.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from batch_resources import keys


class Annotation(NamedTuple):
    """Describe one annotation.

    Attributes:
        key: as it stands on the object.
        place: the kind of object that carries it.
        writer: who writes it.
        grammar: what may stand in it, with an example.
        meaning: what the bridge makes of it.
    """

    key: str
    place: str
    writer: str
    grammar: str
    meaning: str


ORDER_KEYS: Final = (keys.DRAIN_ANNOTATION, keys.PAUSE_ANNOTATION, keys.CAP_ANNOTATION, keys.FIX_ANNOTATION)
"""What an operator orders, each for one Node; see `batch_resources.annotations.orders` for the grammar."""

CATALOGUE: Final[tuple[Annotation, ...]] = (
    Annotation(
        keys.DRAIN_ANNOTATION,
        "Node",
        "operator (`yarn-copilot drain`, `yarn-copilot release`)",
        "`true`, or parts of `deadline=TIME; release=true; reason=TEXT`",
        "YARN's capacity goes to the floor and does not grow; the claim follows the containers that end. The deadline "
        "ends the waiting, not the order. With `release=true` our entry goes too when the node is empty.",
    ),
    Annotation(
        keys.PAUSE_ANNOTATION,
        "Node",
        "operator (`yarn-copilot pause`)",
        "`true`, or parts of `until=TIME; reason=TEXT`",
        "Nothing is written for this node, neither to it nor to a ResourceManager. What would be written is shown.",
    ),
    Annotation(
        keys.CAP_ANNOTATION,
        "Node",
        "operator (`yarn-copilot cap`)",
        "parts of `cpu=4; memory=8Gi; until=TIME; reason=TEXT`, at least one amount",
        "YARN's capacity on this node, all NodeManagers together, is at most this much.",
    ),
    Annotation(
        keys.FIX_ANNOTATION,
        "Node",
        "operator (`yarn-copilot fix`)",
        "parts of `cpu=4; memory=8Gi; until=TIME; reason=TEXT`, at least one amount",
        "YARN's capacity on this node, all NodeManagers together, is exactly this much, but never more than what is "
        "there: weights and minimums do not count, all rules of safety do.",
    ),
    Annotation(
        keys.NODE_ID_ANNOTATION,
        "NodeManager pod, or Node with a host daemon",
        "operator, or the NodeManager's start script",
        "`host:port`",
        "The NodeManager's id at the ResourceManager; wins over every name.",
    ),
    Annotation(
        keys.CLUSTER_ID_ANNOTATION,
        "NodeManager pod, or Node with a host daemon",
        "operator",
        "id of a configured cluster",
        "The YARN cluster that the NodeManager belongs to.",
    ),
    Annotation(
        keys.CLAIM_COUNTER_ANNOTATION,
        "Node",
        "the bridge, in mode strict",
        "`NUMBER.TERM`",
        "Changes with every write of our entry, so that an older write can never land after a newer one.",
    ),
    Annotation(
        keys.THIRD_PARTY_ANNOTATION,
        "Node",
        "the bridge and others, one entry each",
        "JSON of Koordinator",
        f"Our entry `{keys.ENTRY_NAME}` says what YARN holds; entries of others are kept as they are.",
    ),
    Annotation(
        keys.ORIGIN_ANNOTATION,
        "Node",
        "koord-manager",
        "JSON of Koordinator",
        "What is idle on the node before third parties are subtracted. Read only.",
    ),
    Annotation(
        keys.CPU_NORMALIZATION_RATIO_ANNOTATION,
        "Node",
        "koord-manager",
        "decimal number",
        "By how much batch-cpu was multiplied; used with `capacity.cpu_unit: physical`. Read only.",
    ),
)
