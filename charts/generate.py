#!/usr/bin/env python3
"""Make what the chart has from elsewhere: values schema, table of values, shipped policies, resource definition.

python charts/generate.py             write all of it
python charts/generate.py --check     say what is not current; status 1 if anything is
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from typed_values import read, to_schema, to_table

from webhook.cluster.crd import definition
from webhook.policy import schema

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts" / "fieldwarden"
BEGIN, END = "<!-- values: made by charts/generate.py -->\n", "<!-- end of values -->\n"


def made() -> dict[Path, str]:
    """Every generated file and what it must hold."""
    values = read((CHART / "values.yaml").read_text())
    return {
        CHART / "values.schema.json": json.dumps(_with_policies(to_schema(values)), indent=2) + "\n",
        CHART / "README.md": _readme(to_table(values)),
        CHART / "files" / "fieldpolicies.yaml": yaml.safe_dump(definition(), sort_keys=False, width=120),
        **_policies(),
    }


def _with_policies(whole: dict[str, Any]) -> dict[str, Any]:
    """With the schema of policies for those that stand in the values: Helm refuses a misspelt key before a pod meets it."""
    inline = whole["properties"]["policies"]["properties"]["inline"]
    inline["additionalProperties"] = {"$ref": "#/$defs/Spec"}
    return whole | {"$defs": schema()["$defs"]}


def stale(files: Mapping[Path, str]) -> dict[Path, str]:
    """What is not as it must be, and how; a policy that is shipped no more counts too."""
    found = {}
    for path, text in files.items():
        if not path.exists():
            found[path] = "is missing"
        elif path.read_text() != text:
            found[path] = "is not current"
    left = {path: "is of no policy that is shipped" for path in (CHART / "policies").iterdir() if path not in files}
    return found | left


def write(files: Mapping[Path, str]) -> None:
    for path in stale(files):
        if path in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path])
        else:
            path.unlink()


def _policies() -> dict[Path, str]:
    return {
        CHART / "policies" / f"{file.parent.name}.yaml": file.read_text()
        for file in sorted((ROOT / "policies").glob("*/policy.yaml"))
    }


def _readme(table: str) -> str:
    """README.md with the table between its two marks."""
    before, _, rest = (CHART / "README.md").read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


def main(arguments: list[str]) -> int:
    files = made()
    if arguments == ["--check"]:
        found = stale(files)
        for path, how in found.items():
            sys.stderr.write(f"{path.relative_to(ROOT)} {how}: run `python charts/generate.py`\n")
        return 1 if found else 0
    if arguments:
        sys.stderr.write(__doc__ or "")
        return 2
    write(files)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
