"""The shape of a document: the model's errors as problems with places, and all that can be saved of a faulty policy.

One fault hides no other: what is faulty is cut out, and the sense of the rest is still looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from webhook.policy.model import NAME_TAG, OBJECT_TAG, FieldPolicy, Model
from webhook.policy.problems import CATALOGUE, Place, Problem, problem
from webhook.policy.source import Broken, Entry, Items, Node, Scalar, Table, plain

Path: TypeAlias = tuple[str | int, ...]
AnyModel = TypeVar("AnyModel", bound=Model)

_WHOLE_ITEMS = ("owners", "leftovers", "deny", "allow", "bind", "managedBy", "subjects", "from")
"""Lists whose faulty items are cut out whole: half of a matcher would mean something else."""


@dataclass(frozen=True, slots=True)
class Found:
    """A node of the file, its key's place where it has one, and whether the path led all the way to it."""

    node: Node
    key: Place | None
    whole: bool

    @property
    def parent_place(self) -> Place:
        """Where to point for something missing inside: the key, or the item."""
        return self.key or self.node.place


def find(root: Node, path: Iterable[str | int]) -> Found:
    """The node at a path, or the deepest one above it. Union tags are passed over."""
    node, key, whole = root, None, True
    for step in path:
        if isinstance(node, Table) and step in node.entries:
            entry = node.entries[str(step)]
            node, key = entry.node, entry.place
        elif isinstance(node, Items) and isinstance(step, int) and step < len(node.items):
            node, key = node.items[step], None
        elif step not in (NAME_TAG, OBJECT_TAG):
            whole = False
            break
    return Found(node, key, whole)


def empties(root: Node, file: str) -> tuple[Node, list[Problem]]:
    """Reports keys and items below `spec` that hold nothing, and puts Broken in their places."""
    problems: list[Problem] = []

    def walk(node: Node, key: Entry | None, name: str) -> Node:
        match node:
            case Scalar(value=None):
                place = key.place if key is not None else node.place
                problems.append(problem("empty-value", file, place, f"{name} is empty"))
                return replace(node, value=Broken())
            case Table():
                entries = {n: Entry(e.place, walk(e.node, e, n)) for n, e in node.entries.items()}
                return replace(node, entries=entries)
            case Items():
                return replace(node, items=tuple(walk(item, None, "an item") for item in node.items))
        return node

    if not isinstance(root, Table) or "spec" not in root.entries:
        return root, problems
    spec = root.entries["spec"]
    entries = {**root.entries, "spec": Entry(spec.place, walk(spec.node, spec, "spec"))}
    return replace(root, entries=entries), problems


def check_shape(root: Node, file: str) -> tuple[FieldPolicy | None, list[Problem]]:
    """The model, or every problem of the shape."""
    try:
        return FieldPolicy.model_validate(plain(root)), []
    except ValidationError as error:
        found = (_problem(details, root, file) for details in error.errors(include_url=False))
        return None, [one for one in found if one is not None]


def tolerant(model: type[AnyModel], node: Node) -> tuple[AnyModel, Node, bool] | None:
    """As much of a node as makes a model, the node without the rest, and whether anything was cut; or None."""
    damaged = False
    left: Node | None = node
    while left is not None:
        try:
            return model.model_validate(plain(left)), left, damaged
        except ValidationError as error:
            damaged = True
            left = _without(left, {_cut(details) for details in error.errors(include_url=False)})
    return None


def _cut(details: ErrorDetails) -> Path:
    """What to leave out because of an error: the faulty value, the table that lacks a key, or the whole item."""
    path = tuple(step for step in details["loc"] if step not in (NAME_TAG, OBJECT_TAG))
    if details["type"] == "missing":
        path = path[:-1]
    if "for" in path[:1]:
        return ()
    for position, step in enumerate(path[:-1]):
        if step in _WHOLE_ITEMS and isinstance(path[position + 1], int):
            return path[: position + 2]
    return path


def _without(node: Node, paths: set[Path]) -> Node | None:
    """A node without what lies at the paths; None when nothing of it is left, or when a path leads nowhere in it."""
    if () in paths:
        return None
    below: dict[str | int, set[Path]] = {}
    for path in paths:
        below.setdefault(path[0], set()).add(path[1:])
    if isinstance(node, Table) and below.keys() <= node.entries.keys():
        entries: dict[str, Entry] = {}
        for name, entry in node.entries.items():
            left = _without(entry.node, below[name]) if name in below else entry.node
            if left is not None:
                entries[name] = replace(entry, node=left)
        return replace(node, entries=entries)
    if isinstance(node, Items) and below.keys() <= set(range(len(node.items))):
        kept = (_without(item, below[index]) if index in below else item for index, item in enumerate(node.items))
        return replace(node, items=tuple(item for item in kept if item is not None))
    return None


def _problem(details: ErrorDetails, root: Node, file: str) -> Problem | None:
    if details["input"] == Broken():
        return None
    path, kind = details["loc"], details["type"]
    found = find(root, path)
    if kind in CATALOGUE:
        return _of_text(details, found, file)
    if kind == "missing":
        key = str(path[-1])
        parent = find(root, path[:-1])
        return problem("missing-key", file, parent.parent_place, f"the key {key} is missing", advice=_describe(path))
    if kind == "extra_forbidden":
        place = found.key or found.node.place
        return problem("unknown-key", file, place, f"there is no key {path[-1]} here", advice=_meant(path))
    if kind == "too_long":
        most = details.get("ctx", {}).get("max_length")
        return problem("yaml-limit", file, found.node.place, f"the list has over {most} items")
    if kind in ("too_short", "string_too_short"):
        what = "the list" if kind == "too_short" else "the text"
        return problem("empty-value", file, found.node.place, f"{what} is empty")
    if kind == "literal_error":
        return _of_choice(details, found, file)
    wanted = _WANTED.get(kind, "something else")
    said = f"{wanted} is expected here, not {_type_name(details['input'])}"
    return problem("wrong-type", file, found.node.place, said, advice=_right_type(kind, details["input"], path))


def _right_type(kind: str, given: object, path: Path) -> str | None:
    if kind == "string_type" and isinstance(given, bool | int | float):
        return "put it in quotes"
    if kind == "list_type" and not isinstance(given, list):
        return "put it in brackets, or behind a dash"
    if kind == "bool_type" and isinstance(given, str) and given.lower() in ("true", "false"):
        return "write it without quotes"
    model = _model_at(path) if kind.startswith("model") else None
    if model is not None:
        return f"its keys: {', '.join(_alias(model, name) for name in model.model_fields)}"
    return _describe(path)


def _of_text(details: ErrorDetails, found: Found, file: str) -> Problem:
    context: dict[str, Any] = details.get("ctx", {})
    column, text, node = context["column"], details["input"], found.node
    if column is None or not isinstance(node, Scalar) or not isinstance(text, str):
        place = node.place if isinstance(node, Scalar) else found.parent_place
        return problem(details["type"], file, place, context["message"], advice=context["advice"])
    caret, shown = (column, text) if text.isprintable() and len(text) <= 200 else (None, None)
    return problem(
        details["type"], file, node.at(column), context["message"], advice=context["advice"], text=shown, caret=caret
    )


def _of_choice(details: ErrorDetails, found: Found, file: str) -> Problem:
    given = details["input"]
    choices = [choice for choice in _choices(details["loc"]) if isinstance(choice, str)]
    said = f"one of {', '.join(choices)} is expected here" if len(choices) > 1 else f"{choices[0]} is expected here"
    if not isinstance(given, str):
        return problem(
            "wrong-type", file, found.node.place, f"{said}, not {_type_name(given)}", advice="write one of these"
        )
    folded = {choice.lower(): choice for choice in choices}
    near = get_close_matches(given.lower(), folded, 1) if len(choices) > 1 else []
    advice = f"did you mean {folded[near[0]]}?" if near else f"write {' or '.join(choices)}"
    return problem("wrong-value", file, found.node.place, said, advice=advice)


_WANTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _type_name(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
    return "a mapping"


def _meant(path: Path) -> str:
    """What an unknown key was meant to be: one of the same table, or one that stands elsewhere."""
    key = str(path[-1])
    here = _model_at(path[:-1])
    known = [_alias(here, name) for name in here.model_fields] if here is not None else []
    near = get_close_matches(key, known, 1) or [name for name in known if name.lower() == key.lower()]
    if near:
        return f"did you mean {near[0]}?"
    homes = sorted({home for home, name in _all_keys(FieldPolicy, "") if name == key and home})
    if homes:
        return f"{key} stands in {' or '.join(homes)}"
    return f"known here: {', '.join(known)}" if known else "remove it"


def _describe(path: Path) -> str:
    field = _field_at(path)
    return str(field.description).rstrip(".") if field is not None and field.description else ""


def _alias(model: type[BaseModel], name: str) -> str:
    return model.model_fields[name].alias or name


def _all_keys(
    model: type[BaseModel], home: str, seen: frozenset[type[BaseModel]] = frozenset()
) -> Iterator[tuple[str, str]]:
    if model in seen:
        return
    for name, field in model.model_fields.items():
        alias = _alias(model, name)
        yield home, alias
        for below in _models_in(field.annotation):
            yield from _all_keys(below, alias, seen | {model})


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _model_at(path: Path) -> type[BaseModel] | None:
    if not path:
        return FieldPolicy
    field = _field_at(path)
    models = _models_in(field.annotation) if field is not None else []
    return models[0] if models else None


def _field_at(path: Path) -> Any:
    """The model's field that a path of keys ends in; indices and union tags are passed over."""
    model: type[BaseModel] | None = FieldPolicy
    field = None
    for step in path:
        if isinstance(step, int) or step in (NAME_TAG, OBJECT_TAG):
            continue
        if model is None:
            return None
        field = next((f for name, f in model.model_fields.items() if _alias(model, name) == step), None)
        if field is None:
            return None
        models = _models_in(field.annotation)
        model = models[0] if models else None
    return field


def _choices(path: Path) -> tuple[Any, ...]:
    field = _field_at(path)
    return _literals(field.annotation) if field is not None else ()


def _literals(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(value for part in get_args(annotation) for value in _literals(part))
