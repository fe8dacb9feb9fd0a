"""The text of paths: every path is read back from its own text, and a fault is shown where it is."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from tests.strategies import ANY_TEXT, PATHS, STEPS
from webhook.fields import FieldPath, FieldsError, Pattern
from webhook.fields.steps import field_step, key_step, value_step


@given(PATHS)
@example(FieldPath(("f:metadata", "f:labels", "f:a", "f:b")))
@example(FieldPath(("f:metadata", "f:labels", "f:metadata", "f:labels", "f:a.b", "f:c")))
@example(FieldPath(("f:metadata", "f:labels", "f:a", "k:{}")))
@example(FieldPath(("k:{}", "i:-9223372036854775808")))
@example(FieldPath(('k:{"":null,"*":"]","a=b":"\\""}', "f:*", "f:", 'v:"*"')))
def test_a_path_is_read_back_from_its_text(path: FieldPath) -> None:
    assert FieldPath.parse(str(path)) == path


ANY_PATHS = st.lists(
    st.one_of(ANY_TEXT.map(field_step), ANY_TEXT.map(value_step), st.dictionaries(ANY_TEXT, ANY_TEXT).map(key_step)),
    min_size=1,
    max_size=4,
).map(FieldPath)


@given(ANY_PATHS)
@example(FieldPath((field_step("\ud800\udc00"),)))
@example(FieldPath((field_step("\ud800\udc00\ud800\udc00\udc00\ud800"),)))
def test_a_path_of_any_characters_is_read_back_from_its_text(path: FieldPath) -> None:
    assert FieldPath.parse(str(path)) == path


@given(ANY_PATHS)
def test_nothing_in_the_text_of_a_path_goes_unseen(path: FieldPath) -> None:
    """But for the second of two halves of a character, which no JSON has apart."""
    assert "".join(char for char in str(path) if not "\udc00" <= char <= "\udfff").isprintable()
    assert tuple(FieldPath.parse(str(path))) == tuple(path)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (field_step("\x9b2J"), r'["\u009b2J"]'),
        (field_step("a\u202eb"), r'["a\u202eb"]'),
        (field_step("\u200b\x7f\xa0"), r'["\u200b\u007f\u00a0"]'),
        (field_step("\U000e0041"), r'["\udb40\udc41"]'),
        (field_step("\ud800"), r'["\ud800"]'),
        (value_step("\u2066x"), r'[="\u2066x"]'),
        (key_step({"na\u200dme": "\x85"}), r'["na\u200dme"="\u0085"]'),
        (field_step("über 😀"), '["über 😀"]'),
    ],
)
def test_what_nobody_would_see_is_spelt_out(step: str, text: str) -> None:
    assert str(FieldPath((step,))) == text
    assert tuple(FieldPath.parse(text)) == (step,)


@given(PATHS, PATHS)
def test_two_paths_with_one_text_are_one_path(a: FieldPath, b: FieldPath) -> None:
    assert (str(a) == str(b)) == (a == b)


@given(PATHS)
def test_a_path_survives_pickling_and_its_repr_says_it(path: FieldPath) -> None:
    assert pickle.loads(pickle.dumps(path)) == path
    assert eval(repr(path), {"FieldPath": FieldPath}) == path


@given(PATHS, PATHS)
def test_a_path_starts_with_what_it_was_made_longer_from(a: FieldPath, b: FieldPath) -> None:
    longer = FieldPath((*a, *b))
    assert longer.starts_with(a) and not a.starts_with(longer)
    assert longer.order[: len(a)] == a.order


_BITS = st.sampled_from(
    [".", "[", "]", "a", "*", '"', "=", ",", "\\", "{", "0", "-", "1e999", "NaN", "null", ".metadata.labels", " "]
)


@given(st.lists(_BITS | st.text(max_size=2), max_size=10).map("".join))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    for read in (FieldPath.parse, Pattern.parse):
        try:
            made = read(text)
        except FieldsError as error:
            assert error.text == text
            assert error.column is not None and 0 <= error.column <= len(text)
        else:
            assert read(str(made)) == made


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (".metadata.labels.app.kubernetes.io/name", ("f:metadata", "f:labels", "f:app.kubernetes.io/name")),
        (".metadata.annotations.example.com/a b", ("f:metadata", "f:annotations", "f:example.com/a b")),
        (".spec.template.metadata.labels.a.b", ("f:spec", "f:template", "f:metadata", "f:labels", "f:a.b")),
        ('.metadata.labels["a"].b', ("f:metadata", "f:labels", "f:a", "f:b")),
        ('.spec["a.b"].c', ("f:spec", "f:a.b", "f:c")),
        ('.spec.ports[protocol="TCP",port=80]', ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}')),
        ("[=1.0][=true][=null][0]", ("v:1", "v:true", "v:null", "i:0")),
        ('["a=b"="c"]', ('k:{"a=b":"c"}',)),
        ("[=1.23456789e+08]", ("v:123456789",)),
        (".a-b._c.1", ("f:a-b", "f:_c", "f:1")),
    ],
)
def test_texts_as_the_server_and_people_write_them(text: str, steps: tuple[str, ...]) -> None:
    assert tuple(FieldPath.parse(text)) == steps


PATH_FAULTS = {
    "": snapshot("""\
an empty path: write one such as .metadata.labels
  \n\
  ^\
"""),
    "spec": snapshot("""\
a path begins with a dot, as .spec
  spec
  ^\
"""),
    "a.b": snapshot("""\
a path begins with a dot, as .spec
  a.b
  ^\
"""),
    ".": snapshot("""\
a field's name is missing after the dot
  .
   ^\
"""),
    ".spec.": snapshot("""\
a field's name is missing after the dot
  .spec.
        ^\
"""),
    ".spec..replicas": snapshot("""\
a field's name is missing after the dot
  .spec..replicas
        ^\
"""),
    ".spec]": snapshot("""\
here a "." or a "[" is expected
  .spec]
       ^\
"""),
    ".spec[": snapshot("""\
in brackets stand keys (name="app"), a member (="x"), an index, "a name" or *
  .spec[
        ^\
"""),
    '.spec["a': snapshot("""\
here a quoted text that ends is expected
  .spec["a
        ^\
"""),
    '.spec["a"': snapshot("""\
a "]" is expected here
  .spec["a"
           ^\
"""),
    '.spec["a"]b': snapshot("""\
here a "." or a "[" is expected
  .spec["a"]b
            ^\
"""),
    ".spec.containers[name=app].image": snapshot("""\
here a JSON value (a text in double quotes, as "app") is expected
  .spec.containers[name=app].image
                        ^\
"""),
    '.spec.containers[name="app].image': snapshot("""\
here a quoted text that ends is expected
  .spec.containers[name="app].image
                        ^\
"""),
    '.spec.containers[name="app"': snapshot("""\
a "]" is expected here
  .spec.containers[name="app"
                             ^\
"""),
    '.spec.containers[name="app",].image': snapshot("""\
in brackets stand keys (name="app"), a member (="x"), an index, "a name" or *
  .spec.containers[name="app",].image
                              ^\
"""),
    '.spec.containers[name="app" ].image': snapshot("""\
a "]" is expected here
  .spec.containers[name="app" ].image
                             ^\
"""),
    ".spec.containers[name].image": snapshot("""\
after the key name an "=" and a JSON value are expected, as name="app"
  .spec.containers[name].image
                       ^\
"""),
    ".spec.containers[name=].image": snapshot("""\
here a JSON value (a text in double quotes, as "app") is expected
  .spec.containers[name=].image
                        ^\
"""),
    '.spec.containers[="x".image': snapshot("""\
a "]" is expected here
  .spec.containers[="x".image
                       ^\
"""),
    ".spec.finalizers[=x]": snapshot("""\
here a JSON value (a text in double quotes, as "app") is expected
  .spec.finalizers[=x]
                    ^\
"""),
    ".spec.finalizers[=NaN]": snapshot("""\
here a JSON value (a text in double quotes, as "app") is expected
  .spec.finalizers[=NaN]
                    ^\
"""),
    ".spec.finalizers[=-Infinity]": snapshot("""\
here a JSON value (a text in double quotes, as "app") is expected
  .spec.finalizers[=-Infinity]
                    ^\
"""),
    ".spec.finalizers[=1e999]": snapshot("""\
here a JSON value (a text in double quotes, as "app") is expected
  .spec.finalizers[=1e999]
                    ^\
"""),
    ".spec.args[0": snapshot("""\
a "]" is expected here
  .spec.args[0
              ^\
"""),
    ".spec.args[9223372036854775808]": snapshot("""\
an index has at most 64 bits
  .spec.args[9223372036854775808]
             ^\
"""),
    ".spec.args[99999999999999999999999]": snapshot("""\
an index has at most 64 bits
  .spec.args[99999999999999999999999]
             ^\
"""),
    ".spec.containers[*].image": snapshot("""\
[*] stands in patterns only; a path names one field
  .spec.containers[*].image
                   ^\
"""),
    '.é["\U0001f600"]?': snapshot("""\
here a "." or a "[" is expected
  .é["😀"]?
         ^\
"""),
}


@pytest.mark.parametrize("text", PATH_FAULTS)
def test_a_fault_in_a_path_is_shown_with_a_caret(text: str) -> None:
    with pytest.raises(FieldsError) as raised:
        FieldPath.parse(text)
    assert str(raised.value) == PATH_FAULTS[text]


PATTERN_FAULTS = {
    ".spec.containers[].image": snapshot("""\
in brackets stand keys (name="app"), a member (="x"), an index, "a name" or *
  .spec.containers[].image
                   ^\
"""),
    '.spec.containers[name={"a":1}].image': snapshot("""\
the key name holds a text, a number or a boolean
  .spec.containers[name={"a":1}].image
                   ^\
"""),
    ".spec.containers[*": snapshot("""\
a "]" is expected here
  .spec.containers[*
                    ^\
"""),
    ".spec.containers[**].image": snapshot("""\
after the key ** an "=" and a JSON value are expected, as name="app"
  .spec.containers[**].image
                     ^\
"""),
    "*": snapshot("""\
a path begins with a dot, as .spec
  *
  ^\
"""),
    ".spec.containers[name=*]": snapshot("""\
here a JSON value (a text in double quotes, as "app") is expected
  .spec.containers[name=*]
                        ^\
"""),
}


@pytest.mark.parametrize("text", PATTERN_FAULTS)
def test_a_fault_in_a_pattern_is_shown_with_a_caret(text: str) -> None:
    with pytest.raises(FieldsError) as raised:
        Pattern.parse(text)
    assert str(raised.value) == PATTERN_FAULTS[text]


@given(STEPS)
def test_a_path_of_one_step_has_that_steps_order(step: str) -> None:
    assert FieldPath((step,)).order[0] == FieldPath(("f:a", step)).order[1]
