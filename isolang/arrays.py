"""Gives modules numpy as ``np``, which is imported when its first function is used.

The import of numpy takes longer than a small check. Modules that a check imports but that need
arrays only for some histories, or for encodings, take ``np`` from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isolang._native import NumberArray, int32_array, int64_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            value = getattr(numpy, name)
            setattr(self, name, value)
            return value

    np = _Numpy()

__all__ = ["int32_column", "int64_column", "np"]


def int32_column(numbers: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """Return numbers as a column for the native core.

    Raises:
        OverflowError: if a number is too large.
    """
    if isinstance(numbers, NumberArray) and numbers.format == "i":
        return numbers
    if isinstance(numbers, (list, tuple, range)):
        return int32_array(numbers)
    return np.ascontiguousarray(numbers, dtype=np.int32)


def int64_column(numbers: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return numbers as a column for the native core.

    Raises:
        OverflowError: if a number is too large.
    """
    if isinstance(numbers, NumberArray) and numbers.format == "q":
        return numbers
    if isinstance(numbers, (list, tuple, range)):
        return int64_array(numbers)
    return np.ascontiguousarray(numbers, dtype=np.int64)
