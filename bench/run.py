"""All figures, or those named: `python bench/run.py [decisions] [throughput] [memory] [json] [workers] [journal]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import decisions, journal, json_libraries, serving, worker_models

FIGURES = {
    "decisions": decisions.run,
    "throughput": serving.throughput,
    "memory": serving.memory,
    "json": json_libraries.run,
    "workers": worker_models.run,
    "journal": journal.run,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        print(f"no figure is called {', '.join(unknown)}; there are {', '.join(FIGURES)}", file=sys.stderr)
        return 2
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    for name in names or FIGURES:
        FIGURES[name]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
