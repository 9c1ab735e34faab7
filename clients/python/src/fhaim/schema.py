"""A table's public schema."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from fhaim import native
from fhaim.errors import Error


@dataclass(frozen=True)
class Rule:
    """A rule between columns that holds in all records of a table.

    A rule that holds in the data is a statistic of the data. Accept it only if public knowledge says
    the same of every possible table.
    """

    text: str
    """The rule, as a sentence."""
    columns: tuple[str, ...]
    """The columns that the rule is about."""
    records: int
    """Number of records that support the rule: those that could break it. It is private."""
    change: Mapping[str, Any]
    """The change to the schema: a ``constraint``, or a ``column`` that follows from another one."""

    def _to_json(self) -> dict[str, Any]:
        """Returns the rule as the native module has it."""
        return {
            "columns": list(self.columns),
            "rule": self.text,
            "records": self.records,
            "change": dict(self.change),
        }

    @classmethod
    def _from_json(cls, rule: Mapping[str, Any]) -> Rule:
        return cls(rule["rule"], tuple(rule["columns"]), rule["records"], rule["change"])


class Schema:
    """The public description of a table: its columns, their kinds and their values.

    It is published with everything that is made from the table, so its owner must check it first. A
    schema that was drafted without an epsilon was read from the records.
    """

    def __init__(
        self, schema: Mapping[str, Any], notes: Sequence[str] = (), rules: Sequence[Rule] = ()
    ) -> None:
        self._schema = dict(schema)
        self.notes = list(notes)
        """Remarks of a draft on its columns, and on how it may be used."""
        self.rules = list(rules)
        """Proposed rules of a draft. They are not in the schema: see `accept`."""

    @classmethod
    def draft(
        cls,
        table: native.TableLike,
        *,
        name: str | None = None,
        target: str | None = None,
        leave_out: Sequence[str] = (),
        missing: Sequence[str] = (),
        epsilon: float | None = None,
        delta: float = 1e-9,
        yes: bool = False,
    ) -> Schema:
        """Drafts a schema from a table. With ``epsilon``, the draft is differentially private and
        may be published without a check. Without it, the owner must check the schema
        (``print(schema)``), its ``notes`` and its ``rules``. A private draft of records that were
        used before is an `Error` of kind ``used-before`` unless ``yes``."""
        schema, notes, rules = native.call(
            "No schema was drafted",
            "draft",
            table,
            name=name,
            target=target,
            leave_out=list(leave_out),
            missing=list(missing),
            epsilon=epsilon,
            delta=delta,
            yes=yes,
            tell=None,
        )
        return cls(json.loads(schema), notes, [Rule._from_json(rule) for rule in json.loads(rules)])

    def accept(self, *rules: Rule) -> Schema:
        """Returns the schema with these rules of its draft, which then hold in synthetic tables.

        Accept a rule only if public knowledge says the same of every possible table::

            label, = (rule for rule in schema.rules if rule.columns == ("dept_name", "dept_code"))
            schema = schema.accept(label)
        """
        chosen = json.dumps([rule._to_json() for rule in rules], ensure_ascii=False)
        schema = native.call("The rules were not accepted", "accept", self.to_json(), chosen)
        left = [rule for rule in self.rules if rule not in rules]
        return Schema(json.loads(schema), self.notes, left)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Reads a schema from a file."""
        try:
            schema = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise Error(
                "unreadable",
                "The schema cannot be read",
                f"{path}: {error}",
                way_out="Use Schema.draft to draft one.",
            ) from error
        if not isinstance(schema, dict):
            raise Error(
                "unreadable", "The schema cannot be read", f"{path}: it is not a JSON object"
            )
        return cls(schema)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the schema to a file in the form that the command reads."""
        Path(path).write_text(str(self) + "\n", "utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Returns the schema as JSON data. Changes to the result do not change the schema."""
        copy: dict[str, Any] = json.loads(self.to_json())
        return copy

    def to_json(self) -> str:
        """Returns the schema as one line of JSON."""
        return json.dumps(self._schema, ensure_ascii=False)

    def __str__(self) -> str:
        return json.dumps(self._schema, ensure_ascii=False, indent=2)

    def __repr__(self) -> str:
        columns = self._schema.get("columns", [])
        return f"Schema({self._schema.get('name')!r}, {len(columns)} columns)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._schema == other._schema

    __hash__ = None  # type: ignore[assignment]


SchemaLike = Union[Schema, Mapping[str, Any], str, "os.PathLike[str]"]
"""A schema, its JSON as a dictionary, or its file."""


def as_schema(schema: SchemaLike) -> Schema:
    """Converts any of these to a schema."""
    if isinstance(schema, Schema):
        return schema
    return Schema(schema) if isinstance(schema, Mapping) else Schema.load(schema)
