"""
Writes the models of the client from the OpenAPI document that a server serves.

usage: python write_models.py OPENAPI.json OUTPUT.py
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HEADER = '''"""
The JSON shapes of the API. `npm run python-client` writes this file from the OpenAPI document: do not edit it.

A member that a response may lack is `UNSET` then. Members that this version does not know are left out.
"""
'''
GENERATOR = (
    "datamodel_code_generator --input-file-type openapi --output-model-type msgspec.Struct "
    "--use-msgspec-tagged-unions --snake-case-field --enum-field-as-literal all --formatters builtin "
    "--target-python-version 3.11 --use-schema-description --disable-timestamp --disable-warnings"
)
# The server checks requests. A client that checked responses too would refuse those of a server with other limits.
CHECKS = set(
    "minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minItems maxItems uniqueItems not propertyNames default examples example".split()
)


def simplified(schema: Any) -> Any:
    """Returns a schema without checks and examples. The names of properties are not taken for keywords."""
    if isinstance(schema, list):
        return [simplified(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: simplified(member) for name, member in value.items()}
        if key in ("properties", "schemas", "mapping") and isinstance(value, dict)
        else simplified(value)
        for key, value in schema.items()
        if key not in CHECKS
    }


def with_event_ids(schemas: dict[str, Any]) -> dict[str, Any]:
    """Gives events the member `id`: it is in the frame and not in its JSON, so the client sets it."""
    for name, schema in schemas.items():
        properties = schema.get("properties", {})
        if name.endswith("Event") and {"type", "time", "data"} <= properties.keys():
            properties["id"] = {"type": "string", "default": ""}
    return schemas


def with_joined_unions(schemas: dict[str, Any]) -> dict[str, Any]:
    """
    Makes one struct of each union of objects that no tag tells apart, because msgspec cannot decode such a union. A member
    that not all of the objects require may be missing.
    """
    for name, schema in schemas.items():
        members = [schemas.get(entry.get("$ref", "").rsplit("/", 1)[-1], {}) for entry in schema.get("anyOf", [])]
        if not members or "discriminator" in schema or not all(member.get("type") == "object" for member in members):
            continue
        required = set.intersection(*(set(member.get("required", [])) for member in members))
        schemas[name] = {
            "type": "object",
            **({"description": schema["description"]} if "description" in schema else {}),
            "properties": {key: value for member in members for key, value in member["properties"].items()},
            "required": sorted(required),
        }
    return schemas


def with_tags(code: str) -> str:
    """
    Makes the tag of each struct readable as an attribute, by which type checkers tell the structs of a union apart. Also
    makes the id of each event a string.
    """
    struct = re.compile(r"^class \w+\(Struct, tag_field='(\w+)', tag=('[^']*')\):\n((?:    \"\"\".*?\"\"\"\n\n)?)", re.M | re.S)

    def with_tag(found: re.Match[str]) -> str:
        field, tag, docstring = found.groups()
        return f"{found[0]}    {field}: ClassVar[Literal[{tag}]] = {tag}\n"

    code = code.replace("    id: str | UnsetType = ''\n", "    id: str = ''\n")
    return struct.sub(with_tag, code).replace("from typing import Annotated, Any, ", "from typing import Annotated, Any, ClassVar, ")


def models_of(document: dict[str, Any]) -> str:
    """Returns the source of the models."""
    schemas = with_joined_unions(with_event_ids(simplified(document["components"]["schemas"])))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "models.py")
        source.write_text(json.dumps({**document, "components": {"schemas": schemas}}))
        command = [sys.executable, "-m", *GENERATOR.split(), "--input", str(source), "--output", str(target)]
        subprocess.run(command, check=True)
        code = target.read_text()
    return HEADER + with_tags(re.sub(r"\A(#.*\n)*", "", code))


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(models_of(json.loads(Path(sys.argv[1]).read_text())))
