"""The codes in the native columns, as ``native/core/history.hpp`` defines them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns

# Status of a transaction.
COMMITTED, ABORTED, INDETERMINATE, INITIAL = range(4)
STATUS_NAMES: Final = ("committed", "aborted", "maybe", "initial")

# Kind of an operation.
READ, WRITE, APPEND, READ_LIST, READ_ONE_OF, READ_NONE_OF = range(6)
KIND_NAMES: Final = ("r", "w", "append", "r", "r-in", "r-not-in")
SET_READS: Final = (READ_ONE_OF, READ_NONE_OF)
LISTS: Final = (READ_LIST, READ_ONE_OF, READ_NONE_OF)
"""The kinds whose value is the number of a list."""

# op_value: atoms and the unknown result.
NIL_ATOM: Final = 0
UNKNOWN_VALUE: Final = -1

NO_VERSION: Final = -1  # op_version: not stated
PART: Final = 2  # statement_known: a predicate read of a part keeps the verdict of the whole

# op_source: how a read is matched with its write.
SOURCE_BY_VALUE: Final = -1
SOURCE_INITIAL: Final = -2
SOURCE_MISSING: Final = -3

# The begin and the end of a transaction whose times are not known.
UNKNOWN_BEGIN: Final = -(2**63)
UNKNOWN_END: Final = 2**63 - 1


def initial_alone(columns: Columns) -> NDArray[np.bool_]:
    """Return for each key whether only its initial value, and not nil, names the initial state.

    The column itself may be shorter: it ends with the last key for which this is true.
    """
    import numpy as np

    alone = np.zeros(columns.n_keys(), bool)
    alone[: len(columns.initial_alone)] = columns.initial_alone
    return alone
