"""A policy on its way in: what could be read of it, with the places of its parts, for the checks of sense."""

from __future__ import annotations

from dataclasses import dataclass

from webhook.policy import compiled, model
from webhook.policy.compile import compile_exempt, compile_match, compile_rule
from webhook.policy.compiled import Mode
from webhook.policy.problems import Place, Problem, Severity, problem
from webhook.policy.shape import Path, check_shape, empties, find, tolerant
from webhook.policy.source import Items, Node, Scalar, Table


@dataclass(frozen=True, slots=True)
class DraftRule:
    """One rule. `rule` is None where it has no kind; not `whole` where something faulty was cut out."""

    node: Node
    written: model.Rule
    rule: compiled.Rule | None
    whole: bool

    @property
    def name(self) -> str:
        return self.written.name


@dataclass(frozen=True, slots=True)
class DraftMatch:
    """What the policy is about, as written and as compiled."""

    node: Node
    written: model.Match
    match: compiled.Match


@dataclass(frozen=True, slots=True)
class Draft:
    """One document. Parts that could not be read are None, or missing from `rules`; then not `whole`."""

    file: str
    root: Node
    name: str | None
    mode: Mode
    match: DraftMatch | None
    exempt: compiled.Exempt | None
    rules: tuple[DraftRule, ...]
    rules_whole: bool  # every rule is there, and nothing was cut out of any
    scale_path: str | None
    whole: bool
    policy: model.FieldPolicy | None

    @property
    def name_place(self) -> Place:
        return find(self.root, ("metadata", "name")).node.place

    def problem(
        self,
        rule: str,
        node: Node,
        path: Path,
        message: str,
        *,
        advice: str | None = None,
        severity: Severity | None = None,
    ) -> Problem:
        """A problem at the value that the path leads to, from a node of this document."""
        place = find(node, path).node.place
        return problem(rule, self.file, place, message, advice=advice, severity=severity)

    def key_problem(self, rule: str, node: Node, path: Path, message: str, *, advice: str | None = None) -> Problem:
        """The same at the key."""
        return problem(rule, self.file, find(node, path).parent_place, message, advice=advice)


def draft_of(root: Node, file: str) -> tuple[Draft, list[Problem]]:
    """Everything that can be read of a document, and every problem of its shape."""
    root, problems = empties(root, file)
    policy, more = check_shape(root, file)
    problems += more
    spec = find(root, ("spec",))
    rules, all_read = _rules(spec.node) if spec.whole else ((), False)
    name = find(root, ("metadata", "name"))
    draft = Draft(
        file=file,
        root=root,
        name=name.node.value
        if name.whole and isinstance(name.node, Scalar) and isinstance(name.node.value, str)
        else None,
        mode=_mode(root),
        match=_match(root),
        exempt=_exempt(root),
        rules=rules,
        rules_whole=all_read and all(rule.whole for rule in rules),
        scale_path=policy.spec.scale_path if policy is not None else None,
        whole=policy is not None and all_read,
        policy=policy,
    )
    return draft, problems


def _mode(root: Node) -> Mode:
    found = find(root, ("spec", "mode"))
    given = found.node.value if found.whole and isinstance(found.node, Scalar) else None
    return Mode(given) if given in tuple(Mode) else Mode.AUDIT


def _match(root: Node) -> DraftMatch | None:
    found = find(root, ("spec", "match"))
    read = tolerant(model.Match, found.node) if found.whole else None
    if read is None or read[2]:
        return None
    written, node, _ = read
    return DraftMatch(node, written, compile_match(written))


def _exempt(root: Node) -> compiled.Exempt | None:
    found = find(root, ("spec", "exempt"))
    if not found.whole:
        return compiled.Exempt()
    read = tolerant(model.Exempt, found.node)
    return compile_exempt(read[0]) if read is not None else None


def _rules(spec: Node) -> tuple[tuple[DraftRule, ...], bool]:
    """The rules that could be read, and whether that is all of them."""
    found = find(spec, ("rules",))
    if not (isinstance(spec, Table) and found.whole and isinstance(found.node, Items)):
        return (), False
    rules: list[DraftRule] = []
    for node in found.node.items:
        read = tolerant(model.Rule, node)
        if read is not None:
            written, left, damaged = read
            rules.append(DraftRule(left, written, compile_rule(written) if written.kinds else None, not damaged))
    return tuple(rules), len(rules) == len(found.node.items)
