"""What the texts of a policy may hold: each check takes a text and gives it back, or raises with the fault's place.

The errors are pydantic's, so that all faults of a file are found in one pass; their type is the kind of problem.
"""

from __future__ import annotations

import re

from pydantic_core import PydanticCustomError

from webhook.fields.errors import FieldsError
from webhook.fields.pattern import Pattern

MAX_NAME_BYTES = 128
_MAX_PATTERN = 2048
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NOT_IN_NAMESPACE = re.compile(r"[^-a-z0-9*?]")
_NOT_IN_ACCOUNT = re.compile(r"[^-.a-z0-9*?/]")
_NOT_IN_MANAGER = re.compile(r"[\[\]{}()^$|\\,]")


def fault(rule: str, message: str, advice: str | None = None, column: int | None = None) -> PydanticCustomError:
    """The error of one text; `column` is the offset of the fault in it."""
    return PydanticCustomError(rule, "{message}", {"message": message, "advice": advice, "column": column})


def field_pattern(text: str) -> str:
    if len(text) > _MAX_PATTERN:
        raise fault("bad-path", f"a pattern of over {_MAX_PATTERN} characters", "shorten it")
    try:
        Pattern.parse(text)
    except FieldsError as error:
        column = error.column if error.text == text and error.column is not None else 0
        raise fault("bad-path", error.message, column=column) from None
    except (ValueError, RecursionError):
        raise fault("bad-path", "the pattern cannot be read", column=0) from None
    return text


def literal_path(text: str) -> str:
    field_pattern(text)
    if not Pattern.parse(text).literal:
        raise fault("bad-path", "one path is expected here, without *", column=max(text.find("*"), 0))
    return text


def manager_glob(text: str) -> str:
    """A manager's name, or a glob of names, that the API server could accept."""
    _printable(text)
    if (bad := _NOT_IN_MANAGER.search(text)) is not None:
        advice = None if bad.group() != "," else "write one entry for each name"
        raise fault("bad-glob", f"{bad.group()} has no meaning in a manager's glob", advice, bad.start())
    if len(text.replace("*", "").encode()) > MAX_NAME_BYTES:
        raise fault("name-too-long", f"the name is over {MAX_NAME_BYTES} bytes, so no claim can carry it")
    return text


def manager_name(text: str) -> str:
    """One manager's name, spelt out."""
    _printable(text)
    if (star := re.search(r"[*?]", text)) is not None:
        raise fault("bad-name", "one name is expected here, no glob", "write one name", star.start())
    if len(text.encode()) > MAX_NAME_BYTES:
        raise fault("name-too-long", f"the name is over {MAX_NAME_BYTES} bytes: such a rename would fail the write")
    return text


def user_glob(text: str) -> str:
    _printable(text)
    return text


def namespace_glob(text: str) -> str:
    if (bad := _NOT_IN_NAMESPACE.search(text)) is not None:
        raise fault("bad-glob", f"no namespace's name holds {_named(bad.group())}", column=bad.start())
    return text


def service_account_glob(text: str) -> str:
    """`namespace/name`, either with globs."""
    if text.startswith("system:serviceaccount:"):
        short = "/".join(text.split(":")[2:4])
        raise fault("bad-subject", "a service account is written as namespace/name", f"write {short}", 0)
    if (bad := _NOT_IN_ACCOUNT.search(text)) is not None:
        raise fault("bad-glob", f"no service account's name holds {_named(bad.group())}", column=bad.start())
    parts = text.split("/")
    if len(parts) != 2 or not all(parts):
        advice = "write flux-system/*, for one, for all of a namespace"
        raise fault("bad-subject", "a service account is written as namespace/name", advice, 0)
    return text


def policy_name(text: str) -> str:
    if len(text) > 253 or _SUBDOMAIN.fullmatch(text) is None:
        raise fault("bad-name", "a policy's name is a DNS subdomain: lower case letters, digits, dashes, dots")
    return text


def rule_name(text: str) -> str:
    if len(text) > 63 or _LABEL.fullmatch(text) is None:
        raise fault("bad-name", "a rule's name is up to 63 lower case letters, digits and dashes")
    return text


def group_name(text: str) -> str:
    if text in ("", "*"):
        return text
    if text == "core":
        raise fault("bad-resource", "the core group has no name", 'write "" for the core group')
    if "/" in text:
        group, _, version = text.partition("/")
        raise fault(
            "bad-resource",
            "a group stands without version",
            f"write {group}, and version: {version} beside",
            text.index("/"),
        )
    if _SUBDOMAIN.fullmatch(text) is None:
        raise fault("bad-resource", "a group is a DNS name such as apps or batch")
    return text


def resource_name(text: str) -> str:
    if text == "*":
        return text
    if "/" in text:
        resource, slash = text.partition("/")[0], text.index("/")
        advice = f"write {resource or '*'}: subresources come with them"
        raise fault("bad-resource", "a resource stands without subresource", advice, slash)
    if text != text.lower():
        raise fault("bad-resource", "a resource is the plural in lower case, not the kind")
    if _SUBDOMAIN.fullmatch(text) is None:
        raise fault("bad-resource", "a resource is a plural such as deployments, or * alone for all")
    return text


def version_name(text: str) -> str:
    if _LABEL.fullmatch(text) is None:
        raise fault("bad-resource", "a version is such as v1 or v1beta1", "write it without the group")
    return text


def subresource_name(text: str) -> str:
    if text and _LABEL.fullmatch(text) is None:
        raise fault("bad-resource", "a subresource is such as status or scale", 'write "" for the main resource')
    return text


def label_key(text: str) -> str:
    prefix, slash, name = text.rpartition("/")
    prefix_fine = not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix) is not None)
    if not prefix_fine or len(name) > 63 or _LABEL_NAME.fullmatch(name) is None:
        raise fault("bad-selector", "this is no key of a label")
    return text


def label_value(text: str) -> str:
    if text and (len(text) > 63 or _LABEL_NAME.fullmatch(text) is None):
        raise fault("bad-selector", "this is no value of a label")
    return text


def _printable(text: str) -> None:
    """The server accepts names of printable characters only (Go's unicode.IsPrint, which has no space but " ")."""
    for column, character in enumerate(text):
        if not character.isprintable():
            raise fault("bad-glob", f"the character U+{ord(character):04X} is in no name", "remove it", column)
    if text != text.strip():
        column = 0 if text[0] == " " else len(text) - 1
        raise fault("bad-glob", "a space at the end of a name", "remove it", column)


def _named(character: str) -> str:
    return character if character.isprintable() and character != " " else f"U+{ord(character):04X}"
