"""Synthetic tables that are made on this machine."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from fhaim import native
from fhaim.errors import Error
from fhaim.schema import Schema, SchemaLike, as_schema
from fhaim.where import conditions

_FORMAT = 1

_GROWTH = 8
"""Factor by which a loaded model may exceed the size limit of its fit: the fit counts groups of
values, while sampling needs a cell for each value."""

_MODEL_MB = 1_000
"""Size limit of any model to sample from, in megabytes."""


class Synthesizer:
    """A differentially private model of a table, and tables drawn from it.

    It follows scikit-learn's conventions: parameters are those of ``__init__``, and attributes that
    `fit` learns end in ``_``. There is no seed, because a party that knows a seed can remove the
    noise.
    """

    def __init__(
        self,
        schema: SchemaLike | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-9,
        mechanism: str = "staged",
        encrypted: bool = False,
        record_bound: int | None = None,
        target_weight: int = 1,
        model_mb: int = 64,
        memory_mb: int | None = None,
        missing: Sequence[str] = (),
        clamp: bool = False,
        ignore_columns: bool = False,
    ) -> None:
        """``encrypted`` counts on ciphertexts, as the services do: the same releases, in more time.
        Then ``record_bound`` is public. ``missing``, ``clamp`` and ``ignore_columns`` control how
        the table is read."""
        self.schema = schema
        self.epsilon = epsilon
        self.delta = delta
        self.mechanism = mechanism
        self.encrypted = encrypted
        self.record_bound = record_bound
        self.target_weight = target_weight
        self.model_mb = model_mb
        self.memory_mb = memory_mb
        self.missing = missing
        self.clamp = clamp
        self.ignore_columns = ignore_columns

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Returns the parameters of ``__init__``."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **parameters: Any) -> Synthesizer:
        """Changes parameters. A fitted model stays as it is."""
        for name, value in parameters.items():
            if name not in _PARAMETERS:
                raise ValueError(f"unknown parameter {name!r}; the parameters are {_PARAMETERS}")
            setattr(self, name, value)
        return self

    def fit(
        self,
        table: native.TableLike,
        y: object = None,
        *,
        progress: bool | native.Tell | None = None,
        yes: bool = False,
    ) -> Synthesizer:
        """Fits a model to a table, and spends epsilon on it. Ctrl-C stops it without a release.

        If the records were used before from this machine, in any order and file format, warnings
        report the total cost, and the call is an `Error` of kind ``used-before`` unless ``yes``."""
        if self.schema is None:
            raise Error(
                "refused",
                "Nothing was fitted",
                "there is no schema",
                way_out="Use Schema.draft(table) to draft one; its owner must confirm it.",
            )
        schema = as_schema(self.schema)
        model, ledger, summary = native.call(
            "Nothing was fitted",
            "fit",
            table,
            schema.to_json(),
            epsilon=self.epsilon,
            delta=self.delta,
            mechanism=self.mechanism,
            encrypted=self.encrypted,
            record_bound=self.record_bound,
            model_mb=self.model_mb,
            target_weight=self.target_weight,
            memory_mb=self.memory_mb,
            yes=yes,
            reading=native.reading(self.missing, self.clamp, self.ignore_columns),
            tell=native.shown(progress),
        )
        self.schema_ = schema
        self.model_ = model
        self.ledger_ = json.loads(ledger)
        self.summary_ = json.loads(summary)
        self._library = native.library(table)
        return self

    def sample(
        self,
        rows: int | None = None,
        *,
        where: Mapping[str, object] | str | None = None,
    ) -> Any:
        """Draws a table: one of pandas, polars or pyarrow if the model was fitted to one of these,
        otherwise a `Table`, which all of them accept. It has ``rows`` records, by default the
        model's estimate of the original number. All of them meet ``where``, such as ``{"race":
        "Asian"}``."""
        if not hasattr(self, "model_"):
            raise Error("refused", "Nothing was drawn", "there is no model", way_out="Call fit.")
        drawn = native.call(
            "Nothing was drawn",
            "sample",
            self.model_,
            self.schema_.to_json(),
            records=rows,
            conditions=None if where is None else conditions(where),
            model_mb=max(_MODEL_MB, _GROWTH * self.model_mb),
            tell=None,
        )
        return native.of_library(self._library, drawn)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model, its schema and its ledger, all of which are private enough to be passed
        on."""
        if not hasattr(self, "model_"):
            raise Error("refused", "Nothing was saved", "there is no model", way_out="Call fit.")
        path = Path(path)
        about = {"version": _FORMAT, "library": self._library}
        part = path.with_name(f".{path.name}.{uuid4()}.part")
        try:
            with zipfile.ZipFile(part, "x", zipfile.ZIP_DEFLATED) as file:
                file.writestr("about.json", json.dumps(about))
                file.writestr("schema.json", self.schema_.to_json())
                file.writestr("ledger.json", json.dumps(self.ledger_))
                file.writestr("summary.json", json.dumps(self.summary_))
                file.writestr("model", self.model_)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Synthesizer:
        """Reads a file that `save` wrote. The fit's parameters are in its ledger; those of
        ``__init__`` are the defaults."""
        try:
            with zipfile.ZipFile(path) as file:
                about = json.loads(file.read("about.json"))
                if about["version"] != _FORMAT:
                    raise ValueError(f"version {about['version']} is not supported")
                made = cls(Schema(json.loads(file.read("schema.json"))))
                made.schema_ = Schema(json.loads(file.read("schema.json")))
                made.ledger_ = json.loads(file.read("ledger.json"))
                made.summary_ = json.loads(file.read("summary.json"))
                made.model_ = file.read("model")
                made._library = str(about["library"])
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise Error("unreadable", "The model cannot be read", f"{path}: {error}") from error
        return made

    def __repr__(self) -> str:
        return f"Synthesizer(epsilon={self.epsilon}, mechanism={self.mechanism!r})"


_PARAMETERS = tuple(
    name for name in Synthesizer.__init__.__annotations__ if name not in ("self", "return")
)


@dataclass(frozen=True)
class Report:
    """The distance between a synthetic table and the real one. It is not private: only the owner
    may see it."""

    values: dict[str, Any]
    """The whole report, as the command writes it."""
    page: str
    """The report as an HTML page."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, or JSON if the path ends in ``.json``."""
        text = json.dumps(self.values) if str(path).endswith(".json") else self.page
        Path(path).write_text(text, "utf-8")

    def __repr__(self) -> str:
        return f"Report({', '.join(self.values)})"

    def _repr_html_(self) -> str:
        return self.page


def evaluate(
    real: native.TableLike,
    synthetic: native.TableLike,
    schema: SchemaLike | None = None,
    *,
    held_out: native.TableLike | None = None,
    missing: Sequence[str] = (),
    clamp: bool = False,
    ignore_columns: bool = False,
    progress: bool | native.Tell | None = None,
) -> Report:
    """Compares a synthetic table with the real one, and with real records that it was not made
    from.

    Without a schema, one is drafted from the real table, because only its owner sees the report.
    Then values of the synthetic table that the draft lacks are an error.
    """
    drafted = as_schema(schema) if schema is not None else Schema.draft(real, missing=missing)
    report, page = native.call(
        "Nothing was compared",
        "evaluate",
        real,
        synthetic,
        drafted.to_json(),
        held_out=held_out,
        reading=native.reading(missing, clamp, ignore_columns),
        tell=native.shown(progress),
    )
    return Report(json.loads(report), page)
