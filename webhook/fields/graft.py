"""One subtree of a trie put in place of another: for claims that are rewritten at a path."""

from __future__ import annotations

from webhook.fields import trie
from webhook.fields.trie import LEAF, Node, Steps


def replaced(root: Node, path: Steps, other: Node) -> Node:
    """A root that is as another one at a path and below it, and elsewhere as it was.

    >>> replaced({"f:spec": {"f:a": {}, "f:b": {}}}, ("f:spec", "f:a"), {})
    {'f:spec': {'f:b': {}}}
    """
    return _grafted(root, path, trie.lookup(other, path)) or LEAF


def _grafted(node: Node, path: Steps, graft: Node | None) -> Node | None:
    """A node, or None when nothing is left of it. A member that loses all below it stays one."""
    step, rest = path[0], path[1:]
    child = node.get(step)
    below = graft if not rest else (_grafted_below(child, rest, graft) if child is not None else _stem(rest, graft))
    out = {name: under for name, under in node.items() if name != step}
    if below is not None:
        out[step] = below
    return out or None


def _grafted_below(node: Node, path: Steps, graft: Node | None) -> Node | None:
    if not node:  # a leaf is a member, and stays one
        stem = _stem(path, graft)
        return {".": LEAF, **stem} if stem is not None else LEAF
    out = _grafted(node, path, graft)
    return LEAF if out is not None and len(out) == 1 and "." in out else out


def _stem(path: Steps, graft: Node | None) -> Node | None:
    if graft is None:
        return None
    for step in reversed(path):
        graft = {step: graft}
    return graft
