"""The codes in the native columns, as ``native/core/history.hpp`` defines them."""

from __future__ import annotations

from typing import Final

# Status of a transaction.
COMMITTED, ABORTED, INDETERMINATE, INITIAL = range(4)
STATUS_NAMES: Final = ("committed", "aborted", "maybe", "initial")

# Kind of an operation.
READ, WRITE, APPEND, READ_LIST = range(4)
KIND_NAMES: Final = ("r", "w", "append", "r")

# op_value: atoms and the unknown result.
NIL_ATOM: Final = 0
UNKNOWN_VALUE: Final = -1

# op_source: how a read is matched with its write.
SOURCE_BY_VALUE: Final = -1
SOURCE_INITIAL: Final = -2
SOURCE_MISSING: Final = -3

# Real time that is not known.
UNKNOWN_BEGIN: Final = -(2**63)
UNKNOWN_END: Final = 2**63 - 1
