"""From the model to what evaluation reads: every text compiled once."""

from __future__ import annotations

from collections.abc import Iterable

from webhook.fields.pattern import Pattern
from webhook.policy import compiled, model
from webhook.policy.compiled import Action, Glob, ManagerMatcher, Mode, Subject, Subjects, globs

DEFAULT_LEFTOVERS = (
    ManagerMatcher(Glob.compile("kubectl-*"), "Update"),
    ManagerMatcher(Glob.compile("before-first-apply")),
    ManagerMatcher(Glob.compile("ancient-changes")),
)


def compile_policy(written: model.FieldPolicy, source: str) -> compiled.Policy:
    """A policy whose shape and sense have been checked; each rule has exactly one kind."""
    spec = written.spec
    return compiled.Policy(
        name=written.metadata.name,
        description=spec.description,
        mode=Mode(spec.mode),
        match=compile_match(spec.match),
        exempt=compile_exempt(spec.exempt),
        rules=tuple(compile_rule(rule) for rule in spec.rules),
        scale_path=spec.scale_path,
        source=source,
    )


def compile_match(match: model.Match) -> compiled.Match:
    return compiled.Match(
        resources=tuple(
            compiled.ResourceMatcher(frozenset(one.groups), frozenset(one.resources), one.version)
            for one in match.resources
        ),
        namespaces=globs(match.namespaces or ()),
        namespace_selector=_selector(match.namespace_selector),
        object_selector=_selector(match.object_selector),
        managed_by=_managers(match.managed_by or ()),
    )


def compile_exempt(exempt: model.Exempt) -> compiled.Exempt:
    return compiled.Exempt(_subjects(exempt.subjects), globs(exempt.namespaces), exempt.control_plane)


def compile_rule(rule: model.Rule) -> compiled.Rule:
    """Raises ValueError for a rule without any kind."""
    whose = _subjects(rule.for_.subjects) if rule.for_ is not None else None
    if rule.ownership is not None:
        return _ownership(rule.name, whose, rule.ownership)
    if rule.writers is not None:
        return _writers(rule.name, whose, rule.writers)
    if rule.integrity is not None:
        written = rule.integrity
        return compiled.IntegrityRule(
            rule.name, whose, _subjects(written.allow), globs(written.migrates), _action(written.on_tamper)
        )
    if rule.rename is not None:
        names = (one if isinstance(one, str) else one.manager for one in rule.rename.from_)
        return compiled.RenameRule(rule.name, whose, globs(names), rule.rename.to)
    raise ValueError(f"the rule {rule.name} has no kind")


def _ownership(name: str, whose: Subjects | None, written: model.Ownership) -> compiled.OwnershipRule:
    return compiled.OwnershipRule(
        name=name,
        for_subjects=whose,
        fields=tuple(Pattern.parse(text) for text in written.fields),
        except_=tuple(Pattern.parse(text) for text in written.except_),
        owners=_managers(written.owners),
        guard=written.guard,
        on_change=_action(written.on_change),
        on_share=_action(written.on_share),
        on_ghost=_action(written.on_ghost),
        leftovers=DEFAULT_LEFTOVERS if written.leftovers is None else _managers(written.leftovers),
    )


def _writers(name: str, whose: Subjects | None, written: model.Writers) -> compiled.WritersRule:
    return compiled.WritersRule(
        name=name,
        for_subjects=whose,
        deny=_managers(written.deny or ()),
        allow=_managers(written.allow) if written.allow is not None else None,
        bind=tuple(compiled.Binding(_manager(one)) for one in written.bind),
    )


def _action(text: str | None) -> Action | None:
    return Action(text) if text is not None else None


def _managers(written: Iterable[str | model.ManagerMatcher]) -> tuple[ManagerMatcher, ...]:
    return tuple(_manager(one) for one in written)


def _manager(written: str | model.ManagerMatcher) -> ManagerMatcher:
    if isinstance(written, str):
        return ManagerMatcher(Glob.compile(written))
    return ManagerMatcher(
        Glob.compile(written.manager), written.operation, written.subresource, _subjects(written.subjects or ())
    )


def _subjects(written: Iterable[model.Subject]) -> Subjects:
    return Subjects(tuple(_subject(one) for one in written))


def _subject(written: model.Subject) -> Subject:
    if written.user is not None:
        return Subject("user", Glob.compile(written.user))
    if written.group is not None:
        return Subject("group", Glob.compile(written.group))
    namespace, _, name = (written.service_account or "").partition("/")
    return Subject("serviceAccount", Glob.compile(f"system:serviceaccount:{namespace}:{name}"))


def _selector(written: model.LabelSelector | None) -> compiled.LabelSelector | None:
    if written is None:
        return None
    labels = tuple((key, "In", frozenset((value,))) for key, value in written.match_labels.items())
    expressions = tuple((one.key, one.operator, frozenset(one.values)) for one in written.match_expressions)
    return compiled.LabelSelector((*labels, *expressions))  # type: ignore[arg-type]
