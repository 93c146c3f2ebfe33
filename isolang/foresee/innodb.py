"""Says at which of InnoDB's levels violations can be predicted, and what predictions leave out."""

from __future__ import annotations

from typing import Final

from isolang.errors import SpecError

NOT_CONSIDERED: Final = (
    "Predictions do not consider InnoDB's locks of gaps and of foreign keys, and take locking "
    "reads at innodb-snapshot for plain ones, so a server may refuse what is predicted. They are "
    "played on PostgreSQL only"
)
"""What a prediction at one of InnoDB's levels leaves out."""

_REFUSED: Final = {
    "innodb-repeatable-read": (
        "plain reads see a snapshot and locking statements see the newest rows, which predictions "
        "do not distinguish (expected innodb-read-committed or innodb-snapshot); hint: "
        "`isocheck robust --at innodb-repeatable-read` decides for all runs of the programs"
    ),
    "innodb-serializable": (
        "it locks what it reads, so every execution is serializable, and nothing can be predicted "
        "(expected innodb-read-committed or innodb-snapshot)"
    ),
}


def level_to_predict(name: str) -> str:
    """Return the level of the library whose predictions are those at a level of InnoDB.

    Other names are returned unchanged.

    Raises:
        SpecError: no violations can be predicted at this level of InnoDB.

    >>> level_to_predict("innodb-snapshot")
    'si'
    """
    if why := _REFUSED.get(name.lower()):
        raise SpecError(f"{name}: {why}")
    return "si" if name.lower() == "innodb-snapshot" else name
