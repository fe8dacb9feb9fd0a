"""Hypothesis strategies for policy texts."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

GOOD = [path.read_text() for path in sorted((Path(__file__).parent / "good").glob("*.yaml"))]
_BITS = ["{", "}", "[", "]", ":", "- ", "&a ", "*a", "!!set ", "'", '"', "\n", "\t", "---\n", "~", "<<: ", "|", ">-", "#",
         "1", "*", "\x00", "\ufeff", "\x85", "\u2028", "\ud800", "é", "spec", "rules: ", "? ", ", ", "yes", "0x", "%YAML 1.2\n"]  # fmt: skip

globs = st.text(alphabet="ab*?", max_size=6)
names = st.text(alphabet="abc", max_size=6)
_step = st.sampled_from([".a", ".b", ".a*", ".*", '["a"]', '["*"]', "[*]", '[k="a"]', '[k="a*"]', '[k="a",l=1]', '[="a"]', '[="*"]', "[0]"])  # fmt: skip
patterns = st.lists(_step, max_size=3).map(lambda steps: ".s" + "".join(steps))
_plain = st.sampled_from([".a", ".b", ".ab", '[k="a"]', '[k="ab"]', '[k="a",l=1]', '[="a"]', '[="b"]', "[0]"])
paths = st.lists(_plain, max_size=4).map(lambda steps: ".s" + "".join(steps))


@st.composite
def mutated_policies(draw: st.DrawFn) -> str:
    """A good file into which a few things were cut, doubled or written."""
    text = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        middle = draw(st.sampled_from(_BITS) | st.text(max_size=4) | st.just(text[start:end] * 2))
        text = text[:start] + middle + text[end:]
    return text
