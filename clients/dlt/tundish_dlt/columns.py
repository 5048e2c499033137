"""The columns of a table, from a schema of the server's OpenAPI description."""

from typing import Any

TYPES = {"string": "text", "integer": "bigint", "number": "double", "boolean": "bool"}


def columns_of(schemas: dict[str, Any], name: str, exact: bool = False) -> dict[str, Any]:
    """
    Types by column; objects are flattened as dlt does it (`profile__email`), lists and free objects stay JSON. `exact`: numbers with
    a fraction are decimals.
    """
    columns = dict(_columns(schemas, schemas[name], ""))
    for column in columns.values():
        if exact and column["data_type"] == "double":
            column["data_type"] = "decimal"
    return columns


def _columns(schemas: dict[str, Any], schema: dict[str, Any], prefix: str) -> Any:
    for name, field in schema["properties"].items():
        resolved = _resolve(schemas, field)
        if "properties" in resolved:
            yield from _columns(schemas, resolved, f"{prefix}{name}__")
        else:
            column = f"{prefix}{name}"
            yield column, {"name": column, "data_type": _type(resolved), "nullable": True}


def _resolve(schemas: dict[str, Any], field: dict[str, Any]) -> dict[str, Any]:
    """The schema itself behind a reference, and of a union with null the other part."""
    if "$ref" in field:
        return schemas[field["$ref"].rsplit("/", 1)[1]]
    parts = [part for part in field.get("anyOf", []) if part.get("type") != "null"]
    return _resolve(schemas, parts[0]) if len(parts) == 1 else field


def _type(field: dict[str, Any]) -> str:
    types = field.get("type")
    names = [one for one in (types if isinstance(types, list) else [types]) if one not in (None, "null")]
    if len(names) != 1 or names[0] not in TYPES:
        return "json"
    return "timestamp" if field.get("format") == "date-time" else TYPES[names[0]]
