"""The JSON Schema of FieldPolicy, for editors and the custom resource."""

from __future__ import annotations

from typing import Any

from webhook.policy.model import FieldPolicy


def schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12. It knows the shape; paths, globs and sense are the linter's.

    >>> sorted(schema()["required"])
    ['apiVersion', 'kind', 'metadata', 'spec']
    """
    made = _tidy(FieldPolicy.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _tidy(node: Any) -> Any:
    """Without pydantic's titles, and without null: an absent key is absent, an empty one is a mistake."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _tidy(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    branches = out.get("anyOf")
    if isinstance(branches, list) and {"type": "null"} in branches:
        del out["anyOf"]
        rest = [branch for branch in branches if branch != {"type": "null"}]
        out = {**(rest[0] if len(rest) == 1 else {"anyOf": rest}), **out}
    return {key: value for key, value in out.items() if not (key == "default" and value is None)}
