"""`Change`: something that connecting a client does to the user's files, and that can be taken back."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from memgraph.interfaces.agents.connecting.receipt import Receipt

PartState = Literal["missing", "current", "outdated", "changed", "edited", "extra", "in the way"]
"""How a part stands.

==============  ===============================================================
``missing``     It is not there.
``current``     It is as it would be written now.
``outdated``    It is as an earlier version, or other options, wrote it.
``changed``     The user changed it since, so that it is the user's.
``edited``      The user changed it since, and it still runs memgraph.
``extra``       The user added it.
``in the way``  It was there before, and is not memgraph's.
==============  ===============================================================
"""


class Part(NamedTuple):
    """A part of a change, such as a file, and how it stands."""

    path: str
    state: PartState


class Change(Protocol):
    """Something that is written for a client. It never overwrites or removes what a user wrote."""

    def parts(self, receipt: Receipt | None) -> list[Part]:
        """Return how each part stands, given what was written before."""
        ...

    def apply(self, receipt: Receipt) -> None:
        """Write what is missing or outdated, and note it in the receipt.

        Raises
        ------
        StorageError
            Something cannot be written. What was written until then is noted in the receipt.
        """
        ...

    def undo(self, receipt: Receipt) -> None:
        """Remove what is as the receipt says, and strike it from the receipt. What users changed or added stays."""
        ...

    def recover(self, receipt: Receipt) -> bool:
        """Note in an empty receipt what of this change stands, for a receipt that was lost. Return whether all of it does."""
        ...
