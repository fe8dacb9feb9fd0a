"""Set algebra on tries of steps: nested dicts in fieldsV1's own shape, with canonical steps.

A node is a member when it is empty (a leaf) or has the key ".". No node is without members, and "." never stands
alone. Nothing here changes a dict that it was given: subtrees are shared freely. At the root, an empty dict is the
empty set, so the functions below speak of children of a root or of nodes, as their names say; `None` is "no node".
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeAlias

from webhook.fields.errors import FieldsError
from webhook.fields.steps import Order, canonical_step, step_order, step_value

Node: TypeAlias = "dict[str, Node]"
Steps: TypeAlias = tuple[str, ...]

LEAF: Node = {}

_PROBED = 32
"""Levels on which subtrees are first asked whether they are equal, which is fast. Each such question may go all the way
down: asked on every level of a tree that is made to be deep, they would take a time that grows with its square."""


def is_member(node: Node) -> bool:
    return not node or "." in node


def is_leaf(node: Node) -> bool:
    """Whether a node is a member with none below it, also in a fieldsV1 tree as it came."""
    return not node or (len(node) == 1 and "." in node)


def parse(tree: object) -> Node:
    """A fieldsV1 root as a canonical trie: the same dict where it is canonical already. Raises FieldsError."""
    if not isinstance(tree, dict):
        raise FieldsError(f"fieldsV1 is an object, not {type(tree).__name__}")
    root = _canonical(tree)
    if "." in root:  # "No one owns the entire object": the server drops it
        root = {step: node for step, node in root.items() if step != "."}
    return root


def _canonical(tree: Node) -> Node:
    changed: dict[str, Node] | None = None
    for key, child in tree.items():
        if key == ".":
            if child or child.__class__ is not dict:  # the server skips what "." holds
                changed = {**(changed or {}), ".": LEAF}
            continue
        if child.__class__ is not dict:
            raise _no_object(key, child)
        node = _canonical(child) if child else child
        if len(node) == 1 and "." in node:
            node = LEAF
        step = key if key[:2] == "f:" else canonical_step(key)
        if node is not child or step != key:
            changed = changed if changed is not None else {}
            changed[key] = node
    if changed is None:
        return tree
    out: Node = {}
    for key, child in tree.items():
        step = key if key == "." else canonical_step(key)
        node = changed.get(key, child)
        out[step] = _spelt_again(out[step], node) if step in out else node
    return out


def _spelt_again(first: Node, second: Node) -> Node:
    """One step in two spellings, as the server reads it: a member if either is one; below it counts the last that has
    anything."""
    below = {step: node for step, node in second.items() if step != "."} or first
    return {".": LEAF, **below} if below and (is_member(first) or is_member(second)) else below


def _no_object(key: str, value: object) -> FieldsError:
    return FieldsError(f"below {key} stands {type(value).__name__}, where fieldsV1 has an object")


def union(a: Node, b: Node) -> Node:
    """Of two roots."""
    if not a or a is b:
        return b
    return a if not b else _union_nodes(a, b)


def _union_nodes(a: Node, b: Node, level: int = 0) -> Node:
    if not a or not b:
        full = a or b
        return full if is_member(full) else {".": LEAF, **full}
    out = dict(a)
    for step, theirs in b.items():
        mine = out.get(step)
        if mine is None:
            out[step] = theirs
        elif level > _PROBED or mine != theirs:
            out[step] = _union_nodes(mine, theirs, level + 1)
    return out


def intersection(a: Node, b: Node) -> Node:
    """Of two roots."""
    out: Node = {}
    if len(b) < len(a):
        a, b = b, a
    for step, mine in a.items():
        theirs = b.get(step)
        if theirs is not None:
            both = _intersect_nodes(mine, theirs)
            if both is not None:
                out[step] = both
    return out


def _intersect_nodes(a: Node, b: Node) -> Node | None:
    if not a or not b:
        return LEAF if is_member(a) and is_member(b) else None
    return _closed(intersection(a, b))


def difference(a: Node, b: Node) -> Node:
    """What is in root `a` and not in root `b`."""
    return LEAF if a == b else _difference(a, b, 0)


def _difference(a: Node, b: Node, level: int) -> Node:
    out: Node = {}
    for step, mine in a.items():
        theirs = b.get(step)
        if theirs is None:
            out[step] = mine
        elif level > _PROBED or mine != theirs:
            rest = _subtract_nodes(mine, theirs, level + 1)
            if rest is not None:
                out[step] = rest
    return out


def _subtract_nodes(a: Node, b: Node, level: int) -> Node | None:
    if not a:
        return None if is_member(b) else a
    if not b:
        return {step: node for step, node in a.items() if step != "."} or None
    return _closed(_difference(a, b, level))


def recursive_difference(a: Node, b: Node) -> Node:
    """What is in root `a` and neither in root `b` nor below one of its members."""
    out: Node = {}
    for step, mine in a.items():
        theirs = b.get(step)
        if theirs is None:
            out[step] = mine
        elif not is_member(theirs):
            rest = mine if not mine else _closed(recursive_difference(mine, theirs))
            if rest is not None:
                out[step] = rest
    return out


def _closed(node: Node) -> Node | None:
    """A node made of parts, put right: None when nothing is left, a leaf when only "." is."""
    if not node:
        return None
    return LEAF if len(node) == 1 and "." in node else node


def leaves(root: Node) -> Node:
    """The members that have no member below them."""
    return {step: leaves(node) if node else node for step, node in root.items() if step != "."}


def lookup(root: Node, path: Iterable[str]) -> Node | None:
    """The node at a path, member or not."""
    node = root
    for step in path:
        below = node.get(step)
        if below is None:
            return None
        node = below
    return node


def meets(root: Node, path: Iterable[str]) -> bool:
    """Whether a member of a root is at a path, below it, or a leaf above it."""
    node = root
    for step in path:
        below = node.get(step)
        if below is None:
            return False
        if not below:
            return True
        node = below
    return True


def contains(root: Node, path: Steps) -> bool:
    node = lookup(root, path)
    return node is not None and bool(path) and is_member(node)


def exchanged(old: Node, new: Node) -> tuple[Node, Node]:
    """(new - old, old - new) of two fieldsV1 trees as they came, reading no more of them than differs."""
    try:
        gained, lost = _exchange(old, new, 0)
        if "." not in gained and "." not in lost and _canonical(gained) is gained and _canonical(lost) is lost:
            return gained, lost
    except (AttributeError, TypeError):  # something in there is no object: parse says where
        pass
    was, now = parse(old), parse(new)
    return difference(now, was), difference(was, now)


def _exchange(old: Node, new: Node, level: int) -> tuple[Node, Node]:
    """Both differences in one walk."""
    gained: Node = {}
    lost: Node = {}
    for step, now in new.items():
        was = old.get(step)
        if was is None:
            if step in old:
                raise TypeError
            gained[step] = now
        elif was.__class__ is not now.__class__:
            raise TypeError
        elif step == ".":
            continue  # what it holds means nothing
        elif was and now:
            if level > _PROBED or was != now:
                more, less = _exchange(was, now, level + 1)
                for into, node in ((gained, more), (lost, less)):
                    if (rest := _closed(node)) is not None:
                        into[step] = rest
        elif was or now:
            for into, a, b in ((gained, now, was), (lost, was, now)):
                if (rest := _subtract_nodes(a, b, level)) is not None:
                    into[step] = rest
    for step, was in old.items():
        if step not in new:
            lost[step] = was
    return gained, lost


def child(tree: Node, step: str) -> Node | None:
    """The node below a fieldsV1 tree as it came, in which `k:` and `v:` may be spelt in other ways than ours.

    Raises FieldsError where the tree has something else than an object there.
    """
    below = tree.get(step)
    if below is None:
        if step in tree:
            raise _no_object(step, None)
        kind = step[:2]
        if kind != "f:":
            below = next((node for key, node in tree.items() if key[:2] == kind and canonical_step(key) == step), None)
    if below is not None and below.__class__ is not dict:
        raise _no_object(step, below)
    return below


def _respelt(tree: Node) -> Node:
    """A node's items by their canonical steps; its fields are left out."""
    return {canonical_step(key): node for key, node in tree.items() if key[:2] != "f:" and key != "."}


def find(tree: Node, path: Iterable[str]) -> Node | None:
    """`lookup` in a fieldsV1 tree as it came; raises FieldsError as `child` does."""
    node = tree
    try:
        for step in path:
            below = node.get(step)
            if below is None and ((step[:2] == "f:" and step not in node) or (below := child(node, step)) is None):
                return None
            node = below
    except AttributeError:
        raise _no_object(step, node) from None
    if node.__class__ is not dict:
        raise _no_object(step, node)
    return node


def spine(root: Node) -> Steps:
    """The steps that all members of a root have in common.

    >>> spine({"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}}})
    ('f:metadata', 'f:labels')
    """
    steps = []
    node = root
    while len(node) == 1:
        ((step, node),) = node.items()
        steps.append(step)
    return tuple(steps)


def passes(tree: Node, steps: Steps) -> bool:
    """Whether a fieldsV1 tree as it came has all these steps, or a leaf on the way: else it holds nothing below."""
    node = tree
    for step in steps:
        below = node.get(step)
        if below is None and (step[:2] == "f:" or (below := child(node, step)) is None):
            return False
        if not below:
            return True
        node = below
    return True


def held(root: Node, tree: Node) -> tuple[Node, Node]:
    """Of the members of a root: those that a fieldsV1 tree as it came holds itself, and those below one of its leaves.

    The second kind is held only where the leaf is an atomic value; an empty map that got a field looks the same.
    Raises FieldsError as `child` does.
    """
    exact: Node = {}
    covered: Node = {}
    respelt: Node | None = None  # made for the first item that is not found as it is: once, for lists may be long
    for step, mine in root.items():
        theirs = tree.get(step)
        if theirs is None and step[:2] != "f:" and step != ".":
            respelt = _respelt(tree) if respelt is None else respelt
            theirs = respelt.get(step)
        if step == "." or (theirs is None and step not in tree):
            continue
        if theirs.__class__ is not dict:
            raise _no_object(step, theirs)
        below: Node = LEAF
        if mine and (not theirs or (len(theirs) == 1 and "." in theirs)):
            covered[step] = {name: node for name, node in mine.items() if name != "."}
        elif mine:
            below, under = held(mine, theirs)
            if under:
                covered[step] = under
        if is_member(mine) and is_member(theirs):
            exact[step] = {".": LEAF, **below} if below else LEAF
        elif below:
            exact[step] = below
    return exact, covered


def values(root: Node, one: Node, other: Node, keys: Container[str] = ()) -> Node:
    """Of the members of a root: those that two fieldsV1 trees as they came both hold, and at least one as a value.

    That is a leaf there: the "." of a map or item is none. Nor is an item itself, nor the fields that it is known by,
    whose names are `keys` for what is below it. Raises FieldsError as `child` does.
    """
    found: Node = {}
    one, other = _spelt_as(root, one), _spelt_as(root, other)
    for step, mine in root.items():
        if step == ".":
            continue
        first, second = _node(one, step), _node(other, step)
        if first is None or second is None:
            continue
        is_item = step[:2] == "k:"
        below = values(mine, first, second, step_value(step) if is_item else ()) if mine and first and second else LEAF
        if (
            not is_item
            and is_member(mine)
            and ((is_leaf(first) and is_member(second)) or (is_leaf(second) and is_member(first)))
            and not (keys and step[:2] == "f:" and step[2:] in keys)
        ):
            found[step] = {".": LEAF, **below} if below else LEAF
        elif below:
            found[step] = below
    return found


def _spelt_as(root: Node, tree: Node) -> Node:
    """A fieldsV1 tree as it came, its items by their canonical steps where one of a root is not found as it is."""
    for step in root:
        if step[:2] != "f:" and step not in tree and step != ".":
            return {**tree, **_respelt(tree)}
    return tree


def _node(tree: Node, step: str) -> Node | None:
    node = tree.get(step)
    if node.__class__ is not dict and (node is not None or step in tree):
        raise _no_object(step, node)
    return node


def count(root: Node) -> int:
    members, nodes = 0, [root]
    while nodes:
        for step, node in nodes.pop().items():
            if step != ".":
                members += not node or "." in node
                nodes.append(node)
    return members


def iterate(root: Node) -> Iterator[Steps]:
    """Every member in the server's order: at each level the members, then what lies below each."""
    nodes: list[tuple[Node, Steps]] = [(root, ())]
    while nodes:
        node, prefix = nodes.pop()
        steps = [step for step in node if step != "."]
        if len(steps) > 1:
            steps.sort(key=step_order)
        below: list[tuple[Node, Steps]] = []
        for step in steps:
            child, path = node[step], (*prefix, step)
            if not child or "." in child:
                yield path
            if child:
                below.append((child, path))
        nodes += reversed(below)


def build(paths: Iterable[Steps]) -> Node:
    """A root of these paths, whose steps are canonical."""
    root: Node = {}
    for path in paths:
        if not path:
            continue
        node = root
        for step in path[:-1]:
            below = node.get(step)
            if below is None:
                below = node[step] = {}
            node = below
        node.setdefault(path[-1], {})["."] = LEAF
    nodes = [root]
    while nodes:
        here = nodes.pop()
        for step, node in here.items():
            if len(node) == 1 and "." in node:
                here[step] = LEAF
            elif node:
                nodes.append(node)
    return root


def sorted_tree(root: Node) -> Node:
    """A copy in the order in which the server writes fieldsV1."""
    return copied(root, key=lambda step: (-1,) if step == "." else step_order(step))


def copied(root: Node, key: Callable[[str], Order] | None = None) -> Node:
    """A copy that shares nothing, its steps sorted by a key where one is given."""
    made: Node = {}
    nodes = [(root, made)]
    while nodes:
        node, copy = nodes.pop()
        for step in sorted(node, key=key) if key is not None and len(node) > 1 else node:
            copy[step] = {}
            if node[step]:
                nodes.append((node[step], copy[step]))
    return made
