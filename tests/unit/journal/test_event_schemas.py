"""Payload classes are frozen once released: their JSON schemas are compared with recorded ones."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from memgraph.model.events.registry import PAYLOADS

RECORDED = Path(__file__).with_name("event_schemas.json")


def bare(schema: Any, *, is_names: bool = False) -> Any:
    """Return a schema without titles and descriptions, which may change."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = schema.items() if is_names else ((k, v) for k, v in schema.items() if k not in {"title", "description"})
    return {key: bare(value, is_names=key in {"properties", "$defs"} and not is_names) for key, value in kept}


def digests() -> dict[str, str]:
    return {
        f"{name} {version}": hashlib.sha256(
            json.dumps(bare(kind.model_json_schema()), sort_keys=True).encode()
        ).hexdigest()
        for (name, version), kind in sorted(PAYLOADS.items())
    }


def test_released_payloads_never_change() -> None:
    recorded, current = json.loads(RECORDED.read_text()), digests()
    if recorded != current:
        changed = sorted(name for name in recorded if name in current and recorded[name] != current[name])
        gone = sorted(recorded.keys() - current.keys())
        new = sorted(current.keys() - recorded.keys())
        pytest.fail(
            f"changed: {changed}; gone: {gone}; new: {new}.\n"
            "A released payload class must stay as it is, or journals written by it can no longer be read: add a class with "
            "a higher VERSION and an upcaster instead. If the change is to a version that was never released, or is only a "
            f"new one, write this to {RECORDED.name}:\n{json.dumps(current, indent=2)}",
            pytrace=False,
        )


def test_descriptions_are_not_part_of_a_schema_but_a_field_called_title_is() -> None:
    schema = {"title": "T", "description": "d", "properties": {"title": {"title": "Title", "type": "string"}}}
    assert bare(schema) == {"properties": {"title": {"type": "string"}}}
