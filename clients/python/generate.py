#!/usr/bin/env python3
"""Writes src/fhaim/models.py and src/fhaim/api.py from the services' OpenAPI documents.

    python3 generate.py           writes them
    python3 generate.py --check   fails if they are out of date

It writes one dataclass per object schema and one method per operation. It supports only the features
of OpenAPI 3.1 that the three documents use, and stops at anything else, so that nothing is left out
silently. It needs only the standard library.
"""

from __future__ import annotations

import difflib
import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCUMENTS = HERE.parent.parent / "openapi"
PACKAGE = HERE / "src" / "fhaim"
SERVICES = ("generation", "computation", "crypto")
WIDTH = 100
NOTE = '"""{}\n\nWritten by generate.py from openapi/*.json: do not edit.\n"""\n'

Node = dict[str, Any]

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
FORMATS = {"uuid": "UUID", "date-time": "datetime"}


class UnknownError(Exception):
    """A part of a document that this program does not support."""


def doc(text: str, indent: str) -> str:
    """Returns a docstring with some text."""
    text = text.replace("\\", "\\\\").replace("[`", "`").replace("`]", "`")
    lines = []
    for paragraph in text.strip().split("\n\n"):
        width = WIDTH - len(indent) - 6  # the quotes of one line
        lines += [*textwrap.wrap(" ".join(paragraph.split()), width), ""]
    lines = lines[:-1]
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""\n'
    body = "".join(f"{indent}{line}\n" if line else "\n" for line in lines)
    return f'{indent}"""{body.removeprefix(indent)}{indent}"""\n'


def class_name(name: str) -> str:
    """`Page_Job` becomes `JobPage`."""
    return "".join(reversed(name.split("_")))


def identifier(name: str) -> str:
    name = re.sub(r"\W", "_", name).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


class Schemas:
    """The schemas of all documents. Schemas of the same name must have the same content."""

    def __init__(self, documents: dict[str, Node]) -> None:
        self.named: dict[str, Node] = {}
        for service, document in documents.items():
            for name, schema in document["components"]["schemas"].items():
                known = self.named.setdefault(name, schema)
                if known != schema:
                    raise UnknownError(f"{service}: another service has a different {name}")

    def type(self, schema: Node) -> str:
        """Returns the Python type of a schema."""
        if not set(schema) - {"description"}:
            return "Any"
        if "$ref" in schema:
            return self.reference(schema["$ref"])
        if "oneOf" in schema:
            return " | ".join(dict.fromkeys(self.type(one) for one in schema["oneOf"]))
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self.type({**schema, "type": one}) for one in kind)
        if kind == "null":
            return "None"
        if "enum" in schema:
            return "Literal[" + ", ".join(json.dumps(value) for value in schema["enum"]) + "]"
        if kind == "array":
            return f"list[{self.type(schema['items'])}]"
        if kind == "object":
            return self.object(schema)
        if kind == "string":
            return FORMATS.get(schema.get("format", ""), "str")
        if kind in PLAIN:
            return PLAIN[kind]
        raise UnknownError(f"a schema of type {kind}: {json.dumps(schema)[:200]}")

    def reference(self, reference: str) -> str:
        name = reference.removeprefix("#/components/schemas/")
        schema = self.named[name]
        # Names of plain text and of other schemas have no meaning in Python.
        if "$ref" in schema or (schema.get("type") == "string" and "enum" not in schema):
            return self.type(schema)
        return class_name(name)

    def object(self, schema: Node) -> str:
        """Returns the type of an inline object: one with free keys, or one that has a name
        elsewhere."""
        if "properties" not in schema:
            values = schema.get("additionalProperties")
            return f"dict[str, {self.type(values) if isinstance(values, dict) else 'Any'}]"
        for name, known in self.named.items():
            if known.get("properties") == schema["properties"]:
                return class_name(name)
        raise UnknownError(f"an object without a name: {json.dumps(schema)[:200]}")

    def secret(self, schema: Node) -> bool:
        """Returns whether a field must not be printed."""
        if "oneOf" in schema:
            return any(self.secret(one) for one in schema["oneOf"])
        if "$ref" in schema:
            schema = self.named[schema["$ref"].removeprefix("#/components/schemas/")]
        return schema.get("format") == "password"

    def models(self) -> str:
        """Returns the text of the file of types."""
        dataclasses, aliases = [], []
        for name, schema in sorted(self.named.items()):
            if "properties" in schema:
                dataclasses.append(self.dataclass(class_name(name), schema))
            elif "oneOf" in schema and not all(map(tag, schema["oneOf"])):
                # Its forms differ in the names of their only field, so JSON describes it best.
                aliases.append(alias(name, "Any", schema))
            elif "oneOf" in schema:
                members = [self.variant(name, one) for one in schema["oneOf"]]
                dataclasses += [text for _, text in members]
                union = ", ".join(member for member, _ in members)
                aliases.append(alias(name, f"Union[{union}]", schema))
            elif "enum" in schema:
                aliases.append(alias(name, self.type(schema), schema))
        header = NOTE.format("Types that the services read and write.")
        imports = (
            "\nfrom __future__ import annotations\n\nfrom dataclasses import dataclass, field\n"
            "from datetime import datetime\nfrom typing import Any, Literal, Union\n"
            "from uuid import UUID\n"
        )
        return header + imports + "\n\n" + "\n\n".join(dataclasses) + "\n\n" + "\n".join(aliases)

    def variant(self, name: str, schema: Node) -> tuple[str, str]:
        """Returns one form of a value, named after the field that distinguishes it from the others.
        """
        member = class_name(name) + "".join(word.capitalize() for word in tag(schema).split("-"))
        return member, self.dataclass(member, schema)

    def dataclass(self, name: str, schema: Node) -> str:
        unread = set(schema) - {
            "type",
            "description",
            "required",
            "properties",
            "additionalProperties",
        }
        if unread:
            raise UnknownError(f"{name}: {', '.join(sorted(unread))}")
        required = set(schema.get("required", []))
        fields = sorted(schema["properties"].items(), key=lambda item: item[0] not in required)
        body = "".join(self.field(field, content, field in required) for field, content in fields)
        about = doc(schema.get("description", name), "    ")
        head = f"@dataclass(frozen=True, kw_only=True)\nclass {name}:\n"
        return f"{head}{about}\n{body}".rstrip() + "\n"

    def field(self, name: str, schema: Node, required: bool) -> str:
        if identifier(name) != name:
            raise UnknownError(f"a field whose name is not valid in Python: {name}")
        kind = self.type(schema)
        if not required and "None" not in kind.split(" | "):
            kind += " | None"
        options = [] if required else ["default=None"]
        if self.secret(schema):
            options.append("repr=False")
        default = f" = field({', '.join(options)})" if options else ""
        if options == ["default=None"]:
            default = " = None"
        description = schema.get("description") or next(
            (one["description"] for one in schema.get("oneOf", []) if "description" in one), ""
        )
        about = doc(description, "    ") if description else ""
        return f"    {name}: {kind}{default}\n{about}\n"


def tag(schema: Node) -> str:
    """Returns the value of the field that distinguishes a form from the others, or an empty text.
    """
    fields = schema.get("properties", {}).values()
    tags = [field["enum"][0] for field in fields if len(field.get("enum", [])) == 1]
    return tags[0] if len(tags) == 1 else ""


def alias(name: str, meaning: str, schema: Node) -> str:
    line = f"{class_name(name)} = {meaning}\n"
    if len(line) > WIDTH and "[" in line:
        items = meaning[meaning.index("[") + 1 : -1].split(", ")
        inside = textwrap.fill(", ".join(items), WIDTH - 4)
        head = meaning[: meaning.index("[")]
        line = f"{class_name(name)} = {head}[\n{textwrap.indent(inside, '    ')},\n]\n"
    return line + doc(schema["description"], "") + "\n"


class Operations:
    """The methods of one service."""

    def __init__(self, service: str, document: Node, schemas: Schemas) -> None:
        self.service, self.document, self.schemas = service, document, schemas
        self.used: set[str] = set()

    def text(self) -> str:
        methods = [
            self.method(path, verb, operation)
            for path, operations in sorted(self.document["paths"].items())
            for verb, operation in operations.items()
        ]
        title = self.service.capitalize()
        about = doc(self.document["info"]["description"], "    ")
        start = "    def __init__(self, transport: Transport) -> None:\n"
        start += "        self._http = transport\n"
        return f"class {title}:\n{about}\n{start}\n" + "\n".join(methods)

    def type(self, schema: Node) -> str:
        kind = self.schemas.type(schema)
        self.used.update(re.findall(r"[A-Z]\w+", kind))
        return kind

    def method(self, path: str, verb: str, operation: Node) -> str:
        parameters = operation.get("parameters", [])
        by = {
            where: [p for p in parameters if p["in"] == where]
            for where in ("path", "query", "header")
        }
        content, kind = self.body(operation)
        arguments = [f"{identifier(p['name'])}: {self.type(p['schema'])}" for p in by["path"]]
        if content:
            arguments.append(f"body: {kind}")
        optional = by["query"] + by["header"]
        if optional:
            arguments.append("*")
        arguments += [self.argument(parameter) for parameter in optional]
        call = [f'"{verb.upper()}"', self.address(path, by["path"])]
        for where in ("query", "header"):
            if by[where]:
                pairs = ", ".join(f'"{p["name"]}": {identifier(p["name"])}' for p in by[where])
                call.append(f"{where}={{{pairs}}}")
        if content:
            call.append("body=body")
        if "security" not in operation:
            call.append("signed=False")
        returned, how = self.answer(operation)
        return self.written(operation, arguments, returned, f"self._http.{how}", call)

    def written(
        self, operation: Node, arguments: list[str], returned: str, how: str, call: list[str]
    ) -> str:
        head = f"    def {identifier(operation['operationId'])}("
        line = head + ", ".join(["self", *arguments]) + f") -> {returned}:\n"
        if len(line) > WIDTH:
            rows = "".join(f"        {a},\n" for a in ["self", *arguments])
            line = f"{head}\n{rows}    ) -> {returned}:\n"
        about = doc(operation["summary"], "        ")
        kind = [] if returned in ("None", "Stream") else [returned]
        back = "" if returned == "None" else "return "
        inner = f"        {back}{how}({', '.join([*kind, *call])})\n"
        if len(inner) > WIDTH:
            rows = "".join(f"            {a},\n" for a in [*kind, *call])
            inner = f"        {back}{how}(\n{rows}        )\n"
        return line + about + inner

    def argument(self, parameter: Node) -> str:
        kind = self.type(parameter["schema"])
        name = identifier(parameter["name"])
        if parameter.get("required"):
            return f"{name}: {kind}"
        if "None" not in kind.split(" | "):
            kind += " | None"
        return f"{name}: {kind} = None"

    def address(self, path: str, parameters: list[Node]) -> str:
        names = re.findall(r"\{(\w+)\}", path)
        if sorted(names) != sorted(p["name"] for p in parameters):
            raise UnknownError(f"{path}: its parameters differ from the described ones")
        if not names:
            return f'"{path}"'
        template = re.sub(r"\{\w+\}", "{}", path)
        return f'path("{template}", {", ".join(map(identifier, names))})'

    def body(self, operation: Node) -> tuple[str | None, str]:
        if "requestBody" not in operation:
            return None, ""
        ((content, description),) = operation["requestBody"]["content"].items()
        if content == "application/json":
            return content, self.type(description["schema"])
        if content == "application/octet-stream":
            return content, "bytes"
        raise UnknownError(f"a body of type {content}")

    def answer(self, operation: Node) -> tuple[str, str]:
        """Returns the type that a method returns, and the name of the transport's call."""
        good = [answer for status, answer in operation["responses"].items() if status[0] == "2"]
        contents = {
            name: content for answer in good for name, content in answer.get("content", {}).items()
        }
        if not contents:
            return "None", "nothing"
        if set(contents) == {"application/json"}:
            return self.type(contents["application/json"]["schema"]), "json"
        if "application/json" in contents:
            raise UnknownError(f"{operation['operationId']}: answers of several kinds")
        return "Stream", "stream"


def write() -> dict[Path, str]:
    """Returns the files and their text."""
    documents = {
        service: json.loads((DOCUMENTS / f"{service}.json").read_text("utf-8"))
        for service in SERVICES
    }
    schemas = Schemas(documents)
    models = schemas.models()
    parts = [Operations(service, document, schemas) for service, document in documents.items()]
    classes = "\n\n".join(part.text() for part in parts)
    used = sorted({name for part in parts for name in part.used} - {"Any", "UUID", "None"})
    imports = "".join(f"    {name},\n" for name in used)
    header = NOTE.format("One method for each operation of the three services.")
    header += (
        "\nfrom __future__ import annotations\n\nfrom typing import Any\nfrom uuid import UUID\n\n"
        f"from fhaim.models import (\n{imports})\n"
        "from fhaim.transport import Stream, Transport, path\n"
    )
    return {
        PACKAGE / "models.py": models.rstrip() + "\n",
        PACKAGE / "api.py": f"{header}\n\n{classes}".rstrip() + "\n",
    }


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        print(__doc__, file=sys.stderr)
        return 2
    status = 0
    for path, text in write().items():
        there = path.read_text("utf-8") if path.exists() else ""
        if not check:
            path.write_text(text, "utf-8")
        elif there != text:
            status = 1
            lines = difflib.unified_diff(
                there.splitlines(),
                text.splitlines(),
                str(path),
                "as generated",
                lineterm="",
            )
            print("\n".join(list(lines)[:40]), file=sys.stderr)
            print(f"{path.name} is out of date: run generate.py", file=sys.stderr)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UnknownError as error:
        print(f"generate.py: {error}", file=sys.stderr)
        sys.exit(1)
