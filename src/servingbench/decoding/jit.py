"""numba's compiler as a typed decorator: compiled once, kept on disk beside the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt
from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])
Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]


def compiled(function: Function) -> Function:
    """Compile a kernel at its first call in any process; later processes load it."""
    return cast(Function, njit(cache=True)(function))
