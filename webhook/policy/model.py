"""A FieldPolicy as it is written: shape, defaults and descriptions, for loading and for editors. Its sense is lint's.

Every key is described here, once: `schema.py` gives the descriptions to editors.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic.alias_generators import to_camel

from webhook.policy import texts

API_VERSION = "fieldwarden.dev/v1alpha1"
KIND = "FieldPolicy"
MAX_RULES = 256
RULE_KINDS = ("ownership", "writers", "integrity", "rename")

NAME_TAG, OBJECT_TAG = "(name)", "(object)"
"""Which branch of a union an error came from; not a key of the file."""

PatternText = Annotated[
    str,
    Field(min_length=1, examples=[".metadata.labels", '.spec.template.spec.containers[name="app"].image']),
    AfterValidator(texts.field_pattern),
]
PathText = Annotated[str, Field(min_length=1), AfterValidator(texts.literal_path)]
ManagerGlob = Annotated[
    str,
    Field(
        min_length=1,
        description="A manager's name; * and ? stand for any characters and for one.",
        examples=["kubectl-*"],
    ),
    AfterValidator(texts.manager_glob),
]
ManagerName = Annotated[str, Field(min_length=1), AfterValidator(texts.manager_name)]
NamespaceGlob = Annotated[str, Field(min_length=1, examples=["team-*"]), AfterValidator(texts.namespace_glob)]
UserGlob = Annotated[str, Field(min_length=1), AfterValidator(texts.user_glob)]
AccountGlob = Annotated[
    str, Field(min_length=1, examples=["flux-system/*"]), AfterValidator(texts.service_account_glob)
]
LabelKey = Annotated[str, Field(min_length=1), AfterValidator(texts.label_key)]
LabelValue = Annotated[str, AfterValidator(texts.label_value)]
Operation: TypeAlias = Literal["Apply", "Update"]


class Model(BaseModel):
    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, alias_generator=to_camel, hide_input_in_errors=True
    )


class Subject(Model):
    """Users as the API server has authenticated them: exactly one of the three, by glob."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    user: UserGlob | None = Field(None, description="A user's name, by glob.")
    group: UserGlob | None = Field(None, description="A group that the user is in, by glob.")
    service_account: AccountGlob | None = Field(None, description="A service account as namespace/name, by glob.")

    @model_validator(mode="after")
    def _exactly_one(self) -> Subject:
        if sum(value is not None for value in (self.user, self.group, self.service_account)) != 1:
            raise texts.fault("bad-subject", "a subject is exactly one of user, group, serviceAccount")
        return self


class ManagerMatcher(Model):
    """Claims by manager, operation and subresource; with subjects also by the user behind the write."""

    manager: ManagerGlob
    operation: Operation | None = Field(None, description="Apply or Update; either when absent.")
    subresource: Annotated[str, AfterValidator(texts.subresource_name)] | None = Field(
        None, description='The subresource the claim was written through; "" is the main resource; any when absent.'
    )
    subjects: list[Subject] | None = Field(
        None, min_length=1, description="Who must be behind the name. A name is a claim, a user is a fact."
    )


class RenameSource(Model):
    """Update claims to rename."""

    manager: ManagerGlob
    operation: Operation | None = Field(None, description="Update. Apply claims are never renamed.")


class Binding(ManagerMatcher):
    """A manager's name that only these users may write under."""

    subjects: list[Subject] = Field(min_length=1, description="The only users who may write under the name.")


def _branch(value: Any) -> str:
    return OBJECT_TAG if isinstance(value, dict | BaseModel) else NAME_TAG


ManagerEntry = Annotated[
    Annotated[ManagerGlob, Tag(NAME_TAG)] | Annotated[ManagerMatcher, Tag(OBJECT_TAG)], Discriminator(_branch)
]
RenameEntry = Annotated[
    Annotated[ManagerGlob, Tag(NAME_TAG)] | Annotated[RenameSource, Tag(OBJECT_TAG)], Discriminator(_branch)
]


class Requirement(Model):
    """One requirement on a label."""

    key: LabelKey = Field(description="The label's key.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(description="How key and values relate.")
    values: list[LabelValue] = Field([], description="For In and NotIn: the values meant. Else absent.")

    @model_validator(mode="after")
    def _values_fit(self) -> Requirement:
        if self.operator in ("In", "NotIn") and not self.values:
            raise texts.fault("bad-selector", f"{self.operator} needs values", "add values: [...]")
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            raise texts.fault("bad-selector", f"{self.operator} takes no values", "remove values")
        return self


class LabelSelector(Model):
    """A label selector as in Kubernetes: everything named must hold."""

    match_labels: dict[LabelKey, LabelValue] = Field({}, description="Labels and the value that each must have.")
    match_expressions: list[Requirement] = Field([], description="Requirements on labels.")


class ResourceMatcher(Model):
    """Resources by group and plural name. Their subresources come with them."""

    groups: list[Annotated[str, AfterValidator(texts.group_name)]] = Field(
        min_length=1, description='API groups; "" is the core group, "*" any.', examples=[["apps"]]
    )
    resources: list[Annotated[str, Field(min_length=1), AfterValidator(texts.resource_name)]] = Field(
        min_length=1, description='Plural names; "*" is any. Never with a subresource.', examples=[["deployments"]]
    )
    version: Annotated[str, AfterValidator(texts.version_name)] | None = Field(
        None, description="The version that the policy's patterns speak; the preferred one when absent."
    )


class Match(Model):
    """Which requests the policy is about: all of what is given must hold."""

    resources: list[ResourceMatcher] = Field(min_length=1, description="Which resources.")
    namespaces: list[NamespaceGlob] | None = Field(
        None, min_length=1, description="Namespaces, by glob; all, and cluster-scoped objects, when absent."
    )
    namespace_selector: LabelSelector | None = Field(None, description="Labels of the namespace.")
    object_selector: LabelSelector | None = Field(None, description="Labels of the object, old or new.")
    managed_by: list[ManagerEntry] | None = Field(
        None, min_length=1, description="The object, before the write, carries a claim of one of these."
    )


class Exempt(Model):
    """Whom the policy leaves alone. By user, never by manager's name."""

    subjects: list[Subject] = Field([], description="Users, groups and service accounts that are exempt.")
    namespaces: list[NamespaceGlob] = Field([], description="Namespaces that are exempt, by glob.")
    control_plane: bool = Field(
        True, description="Leave the control plane alone: API server, controllers, scheduler, nodes. Default: true."
    )


class For(Model):
    """For whose requests a rule is."""

    subjects: list[Subject] = Field(min_length=1, description="Users, groups and service accounts.")


class Ownership(Model):
    """Some fields belong to some managers."""

    fields: list[PatternText] = Field(min_length=1, description="Patterns of the fields that are owned.")
    except_: list[PatternText] = Field([], alias="except", description="Patterns of fields that are left out again.")
    owners: list[ManagerEntry] = Field(
        min_length=1, description="Who owns the fields. Bind names to users with subjects."
    )
    guard: Literal["Claimed", "Matching"] = Field(
        "Claimed", description="Claimed: the paths that an owner claims now. Matching: every path that matches."
    )
    on_change: Literal["Deny", "Restore", "Reassign"] | None = Field(
        None, description="A non-owner changed or removed a guarded value. Recorded only when absent."
    )
    on_share: Literal["Release", "Deny"] | None = Field(
        None, description="After the write an owner and a non-owner claim one path. Recorded only when absent."
    )
    on_ghost: Literal["Prune"] | None = Field(
        None, description="An owner's apply dropped a path that only leftovers keep alive. Recorded only when absent."
    )
    leftovers: list[ManagerEntry] | None = Field(
        None,
        description="Claims that nobody stands behind any more. "
        "Default: kubectl-* (Update), before-first-apply, ancient-changes.",
    )


class Writers(Model):
    """Which manager names may write at all, and who may use them."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "not": {"required": ["deny", "allow"]}})

    deny: list[ManagerEntry] | None = Field(None, min_length=1, description="Names that may not write. Not with allow.")
    allow: list[ManagerEntry] | None = Field(
        None, min_length=1, description="The only names that may write. Not with deny."
    )
    bind: list[Binding] = Field([], description="Names that only some users may write under.")


class Integrity(Model):
    """Claims are not edited by hand."""

    allow: list[Subject] = Field([], description="Users who may edit claims.")
    migrates: list[ManagerGlob] = Field(
        [], description="Managers whose Update claims may move whole into an Apply claim, as upgrading clients do."
    )
    on_tamper: Literal["Deny", "Restore"] | None = Field(
        None, description="Claims were edited. Recorded only when absent."
    )


class Rename(Model):
    """Update claims under many names are to carry one."""

    from_: list[RenameEntry] = Field(alias="from", min_length=1, description="The names to replace, by glob.")
    to: ManagerName = Field(description="The name to give: no glob, no owner's name, at most 128 bytes.")


class Rule(Model):
    """One rule: a name, and exactly one of ownership, writers, integrity, rename."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [kind]} for kind in RULE_KINDS]})

    name: Annotated[str, Field(min_length=1), AfterValidator(texts.rule_name)] = Field(
        description="Named in messages, reports and metrics."
    )
    for_: For | None = Field(
        None, alias="for", description="The rule is for requests of these; for everyone when absent."
    )
    ownership: Ownership | None = Field(None, description="Some fields belong to some managers.")
    writers: Writers | None = Field(None, description="Which manager names may write at all, and who may use them.")
    integrity: Integrity | None = Field(None, description="Claims are not edited by hand.")
    rename: Rename | None = Field(None, description="Update claims under many names are to carry one.")

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in RULE_KINDS if getattr(self, kind) is not None)


class Spec(Model):
    """What the policy is about and what it wants."""

    description: str = Field("", description="One sentence for people: what the policy is for.")
    mode: Literal["Audit", "Warn", "Enforce"] = Field(
        "Audit", description="How far the policy may go: record; record and tell; act. Default: Audit."
    )
    match: Match = Field(description="Which requests the policy is about.")
    exempt: Exempt = Field(Exempt.model_construct(), description="Whom the policy leaves alone.")
    scale_path: PathText | None = Field(
        None, description="Where a custom resource keeps its replicas. Default: .spec.replicas."
    )
    rules: list[Rule] = Field(
        min_length=1,
        max_length=MAX_RULES,
        description="The rules. Of the ownership rules the first that guards a path decides.",
    )


class Metadata(Model):
    """As of any Kubernetes object; what the API server sets is read over."""

    name: Annotated[str, Field(min_length=1), AfterValidator(texts.policy_name)] = Field(
        description="The policy's name: a DNS subdomain, one policy each."
    )
    labels: dict[str, str] = Field({}, description="Labels, of no meaning here.")
    annotations: dict[str, str] = Field({}, description="Annotations, of no meaning here.")
    uid: Any = Field(None, description="Set by the API server.")
    resource_version: Any = Field(None, description="Set by the API server.")
    generation: Any = Field(None, description="Set by the API server.")
    creation_timestamp: Any = Field(None, description="Set by the API server.")
    managed_fields: Any = Field(None, description="Set by the API server.")
    owner_references: Any = Field(None, description="As of any Kubernetes object.")
    finalizers: Any = Field(None, description="As of any Kubernetes object.")


class FieldPolicy(Model):
    """A policy of field ownership. Cluster-scoped; the same text works as a file, in a ConfigMap and as a resource."""

    api_version: Literal["fieldwarden.dev/v1alpha1"] = Field(description="Always fieldwarden.dev/v1alpha1.")
    kind: Literal["FieldPolicy"] = Field(description="Always FieldPolicy.")
    metadata: Metadata = Field(description="The policy's name.")
    spec: Spec = Field(description="What the policy is about and what it wants.")
    status: Any = Field(None, description="Set by fieldwarden.")
