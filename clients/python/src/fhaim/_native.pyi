"""The command `fhaim` in this process. Use it through the functions of this package."""

from collections.abc import Callable
from typing import Any, final

_Tell = Callable[[str, int, int | None], object]

class Refused(Exception): ...

@final
class Reading:
    def __new__(
        cls,
        *,
        missing: list[str] = ...,
        clamp: bool = False,
        ignore_columns: bool = False,
    ) -> Reading: ...

@final
class Table:
    @property
    def columns(self) -> list[str]: ...
    def csv(self) -> bytes: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...

def draft(
    table: object,
    *,
    name: str | None,
    target: str | None,
    leave_out: list[str],
    missing: list[str],
    epsilon: float | None,
    delta: float,
    yes: bool,
    tell: _Tell | None,
) -> tuple[str, list[str], str, list[str]]: ...
def accept(schema: str, rules: str) -> str: ...
def fit(
    table: object,
    schema: str,
    *,
    epsilon: float,
    delta: float,
    mechanism: str,
    encrypted: bool,
    record_bound: int | None,
    model_mb: int,
    target_weight: int,
    memory_mb: int | None,
    yes: bool,
    reading: Reading,
    tell: _Tell | None,
) -> tuple[bytes, str, str, list[str]]: ...
def sample(
    model: bytes,
    schema: str,
    *,
    records: int | None,
    conditions: str | None,
    model_mb: int,
    tell: _Tell | None,
) -> tuple[Table, list[str]]: ...
def table(text: bytes, schema: str) -> Table: ...
def evaluate(
    real: object,
    synthetic: object,
    schema: str,
    *,
    held_out: object | None,
    reading: Reading,
    tell: _Tell | None,
) -> tuple[str, str, list[str]]: ...
def record_bound(
    table: object, schema: str, *, reading: Reading, tell: _Tell | None
) -> tuple[int, list[str]]: ...
def upload(
    table: object,
    *,
    dataset: str,
    generation: str,
    computation: str,
    crypto: str,
    witness: str | None,
    api_key: str,
    folder: str,
    yes: bool,
    reading: Reading,
    tell: _Tell | None,
) -> list[str]: ...
def forget_dataset(dataset: str) -> list[str]: ...
