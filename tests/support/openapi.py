# SPDX-License-Identifier: Apache-2.0
"""docs/openapi.yaml, read for tests: what it documents, and whether an answer is as it says.

The validator knows the words that the file uses and refuses those that it does not know.
"""
import pathlib
import re

import yaml

FILE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "openapi.yaml"
WORDS = {"type", "properties", "required", "items", "enum", "pattern", "minimum", "maximum", "additionalProperties", "allOf", "$ref",
         "description", "default", "example", "format", "minItems", "maxItems", "minLength", "maxLength", "contentMediaType"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "number": (int, float), "integer": int}


class OpenApi:
    def __init__(self):
        self.file = yaml.safe_load(FILE.read_text(encoding="utf-8"))
        self.seen = set()  # places of properties that occurred in some answer

    def resolve(self, node):
        """The node, and the place where it is written."""
        while "$ref" in node:
            place, at = node["$ref"], self.file
            for part in place[2:].split("/"):
                at = at[part]
            node = at
        return node

    def operations(self):
        for path, methods in self.file["paths"].items():
            for method, operation in methods.items():
                yield path, method.upper(), operation

    def query_parameters(self, operation):
        return {p["name"] for p in map(self.resolve, operation.get("parameters", [])) if p["in"] == "query"}

    def response(self, operation, status):
        responses = operation["responses"]
        return self.resolve(responses.get(str(status)) or responses["default"])

    # ---- answers ----

    def wrong(self, schema, value, place="answer"):
        """What is wrong with a value, or None."""
        name = schema.get("$ref", "").rsplit("/", 1)[-1] if "$ref" in schema else place
        schema = self.resolve(schema)
        unknown = set(schema) - WORDS
        if unknown:
            return f"{place}: the test does not know {unknown}"
        for part in schema.get("allOf", []):
            bad = self.wrong(part, value, place)
            if bad:
                return bad
        return self.wrong_type(schema, value, place) or self.wrong_value(schema, value, place) or self.wrong_parts(schema, value, place, name)

    def wrong_type(self, schema, value, place):
        if "type" not in schema:
            return None
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        for name in types:
            if isinstance(value, TYPES[name]) and (name not in ("number", "integer") or not isinstance(value, bool)):
                return None
        return f"{place}: {value!r} is no {types}"

    def wrong_value(self, schema, value, place):
        if "enum" in schema and value not in schema["enum"]:
            return f"{place}: {value!r} is none of {schema['enum']}"
        if isinstance(value, str):
            if "pattern" in schema and not re.search(schema["pattern"], value):
                return f"{place}: {value!r} does not match {schema['pattern']}"
            if schema.get("format") == "date-time" and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value):
                return f"{place}: {value!r} is no time"
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if value < schema.get("minimum", value) or value > schema.get("maximum", value):
                return f"{place}: {value!r} is out of range"
        return None

    def wrong_parts(self, schema, value, place, name):
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                bad = self.wrong(schema["items"], item, f"{place}[{i}]" if name == place else f"{name}[]")
                if bad:
                    return bad
        if not isinstance(value, dict):
            return None
        known = schema.get("properties", {})
        for missing in set(schema.get("required", [])) - set(value):
            return f"{place}: {missing} is missing"
        for key, item in value.items():
            inner = known.get(key, schema.get("additionalProperties"))
            if inner is None and "properties" in schema and not self.is_part(schema):
                return f"{place}: {key} is not documented"
            if key in known:
                self.seen.add((id(known), key))
            if isinstance(inner, dict):
                bad = self.wrong(inner, item, f"{place}.{key}")
                if bad:
                    return bad
        return None

    def is_part(self, schema):
        """One of several that describe a value together (allOf): it need not know every member."""
        return any(self.resolve(part) is schema for whole in self.file["components"]["schemas"].values()
                   for part in whole.get("allOf", []))

    def unseen(self):
        """Documented properties of answers that no checked answer had."""
        out, done = [], set()

        def walk(schema, place):
            schema = self.resolve(schema)
            if id(schema) in done:
                return
            done.add(id(schema))
            known = schema.get("properties", {})
            for key, inner in known.items():
                if (id(known), key) not in self.seen:
                    out.append(f"{place}.{key}")
                else:
                    walk(inner, f"{place}.{key}")
            for part in schema.get("allOf", []):
                walk(part, place)
            if "items" in schema:
                walk(schema["items"], place + "[]")

        for path, method, operation in self.operations():
            for response in operation["responses"].values():
                for content in self.resolve(response).get("content", {}).values():
                    walk(content["schema"], f"{method} {path}")
        return out
