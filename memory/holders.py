"""Memory's places of personal data, in the order in which erasing goes: what refers before what is referred to."""

from consent.holders import RowsHolder
from consent.holdings import register_holder


def register_all() -> None:
    register_holder(
        RowsHolder(
            "memory",
            (
                "memory.indexsegment",
                "memory.lineage",
                "memory.memory",
                "memory.profileentry",
                "memory.session",
            ),
        )
    )
