"""Functions that need the wheel: the command in this process."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

from fhaim.errors import Error

if TYPE_CHECKING:
    from fhaim import _native

T = TypeVar("T")

Tell = Callable[[str, int, Union[int, None]], object]
"""A function that is called with a phase, the amount done and, if known, the total amount."""


class Arrow(Protocol):
    """A table of pandas, polars, pyarrow or DuckDB: anything with the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...


TableLike = Union[Arrow, str, "os.PathLike[str]"]
"""A table: in memory, or a CSV file."""


def is_here() -> bool:
    """Returns whether this installation has the native module."""
    try:
        import fhaim._native  # noqa: F401
    except ImportError:
        return False
    return True


def call(title: str, function: str, /, *arguments: Any, **named: Any) -> Any:
    """Calls a function of the native module. Raises an `Error` if it fails, and a warning for each
    of its remarks (its last result, which is not returned)."""
    try:
        from fhaim import _native
    except ImportError as error:
        raise Error(
            "program-missing",
            title,
            "this installation has no native module",
            way_out="Install the wheel (clients/python/wheel.sh builds it, with Rust).",
        ) from error
    try:
        done = getattr(_native, function)(*arguments, **named)
    except _native.Refused as error:
        kind, reason, way_out, remarks = error.args
        _warn(remarks)
        raise Error(kind, title, here(reason), way_out=here(way_out)) from None
    except (TypeError, ValueError) as error:
        raise Error("refused", title, str(error)) from error
    if isinstance(done, list):
        done = (done,)
    elif not isinstance(done, tuple):
        return done
    _warn(done[-1])
    return done[0] if len(done) == 2 else done[:-1]


def _warn(remarks: Sequence[str]) -> None:
    for remark in remarks:
        warnings.warn(remark, stacklevel=4)


def here(words: str | None) -> str | None:
    """Returns a text of the command, with its flags in the form of arguments of this package."""
    for flag in ("clamp", "ignore_columns", "yes"):
        words = words and words.replace(f"--{flag.replace('_', '-')}", f"{flag}=True")
    return words


def reading(
    missing: Sequence[str] = (),
    clamp: bool = False,
    ignore_columns: bool = False,
) -> Any:
    """Returns options for reading tables, for `call`, or None without the native module."""
    if not is_here():
        return None
    from fhaim._native import Reading

    return Reading(missing=list(missing), clamp=clamp, ignore_columns=ignore_columns)


def shown(progress: bool | Tell | None) -> Tell | None:
    """Returns a function that shows `progress`: a bar if tqdm is installed, otherwise lines."""
    if progress is None or progress is False:
        return None
    return _Bar() if progress is True else progress


class _Bar:
    def __init__(self) -> None:
        self._phase: str | None = None
        self._bar: Any = None
        try:
            import tqdm  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            self._tqdm: ModuleType | None = None
        else:
            self._tqdm = tqdm

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        if phase != self._phase:
            self._phase = phase
            if self._bar is not None:
                self._bar.close()
            if self._tqdm is None:
                print(phase, file=sys.stderr)
            else:
                self._bar = self._tqdm.tqdm(desc=phase, total=total)
        if self._bar is not None:
            self._bar.update(done - self._bar.n)
            if total is not None and done >= total:
                self._bar.close()
                self._bar = None


def like(table: object, drawn: _native.Table) -> Any:
    """Returns a synthetic table as one of the library of ``table``, or unchanged for any other."""
    return of_library(library(table), drawn)


def library(table: object) -> str:
    """Returns the library of a table."""
    return type(table).__module__.partition(".")[0]


def of_library(name: str, drawn: _native.Table) -> Any:
    """Returns a synthetic table as one of a library."""
    if name == "pandas":
        import pandas

        from_arrow = getattr(pandas.DataFrame, "from_arrow", None)  # since pandas 3
        if from_arrow is not None:
            return from_arrow(drawn)
        import pyarrow

        return pyarrow.table(drawn).to_pandas()
    if name == "polars":
        import polars

        return polars.DataFrame(drawn)
    if name == "pyarrow":
        import pyarrow

        return pyarrow.table(drawn)
    return drawn
