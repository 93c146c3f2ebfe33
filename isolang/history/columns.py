"""The codes used in the native columns, as defined in ``native/core/history.hpp``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from isolang.arrays import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang._native import Columns

# The status of a transaction.
COMMITTED, ABORTED, INDETERMINATE, INITIAL = range(4)
STATUS_NAMES: Final = ("committed", "aborted", "maybe", "initial")

# The kind of an operation.
READ, WRITE, APPEND, READ_LIST, READ_ONE_OF, READ_NONE_OF = range(6)
KIND_NAMES: Final = ("r", "w", "append", "r", "r-in", "r-not-in")
SET_READS: Final = (READ_ONE_OF, READ_NONE_OF)
LISTS: Final = (READ_LIST, READ_ONE_OF, READ_NONE_OF)
"""The operation kinds whose value is a list number."""

# Values in the op_value column: the atom for nil, and the code for an unknown result.
NIL_ATOM: Final = 0
NO_ATOM: Final = -2  # in Columns.deleted: no operation deletes a row
UNKNOWN_VALUE: Final = -1

NO_VERSION: Final = -1  # in op_version: the operation does not state a version
# In statement_known: some of the predicate read's operations have been removed (by sub_history, for
# example), but the remaining operations are still correct about its rows.
PARTLY_KNOWN: Final = 2

# Values in the op_source column, for reads that do not name an operation as their source.
SOURCE_BY_VALUE: Final = -1
SOURCE_INITIAL: Final = -2
SOURCE_MISSING: Final = -3

# The codes for an unknown begin and an unknown end.
UNKNOWN_BEGIN: Final = -(2**63)
UNKNOWN_END: Final = 2**63 - 1


def initial_alone(columns: Columns) -> NDArray[np.bool_]:
    """Return, for each key, whether its initial value replaces nil.

    If so, a read of nil is not a read of the initial state.

    The native column ends at the last key for which this is true.
    """
    alone = np.zeros(columns.n_keys(), bool)
    alone[: len(columns.initial_alone)] = columns.initial_alone
    return alone
