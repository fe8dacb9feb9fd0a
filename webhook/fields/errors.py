"""The one error of this room: a text that is not what it should be, with the place of the fault."""

from __future__ import annotations


class FieldsError(ValueError):
    """A path, a pattern, a fieldsV1 or a managedFields list that cannot be read.

    `message` says what is wrong and what would be right. Where a text was read, `text` is that text and
    `column` the offset (from 0) of the fault in it; `str()` then shows the text with a caret below the fault.
    """

    def __init__(self, message: str, text: str | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.text = text
        self.column = column

    def __str__(self) -> str:
        if self.text is None or self.column is None:
            return self.message
        return f"{self.message}\n  {self.text}\n  {' ' * self.column}^"


class TooDeep(FieldsError):
    """Something nests more deeply than the interpreter's recursion limit lets it be followed."""

    def __init__(self, message: str = "nested too deeply") -> None:
        super().__init__(message)
