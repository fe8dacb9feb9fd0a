"""What strangers write, such that people see what it is: a terminal does with it nothing but show it."""

from __future__ import annotations


def visible(text: str) -> str:
    """Controls, marks that turn the direction of writing, and all else that is not seen are spelt out, as JSON does.

    >>> visible("kubectl"), visible("a\\u202eb\\x1b[31m\\U000e0041")
    ('kubectl', 'a\\\\u202eb\\\\u001b[31m\\\\udb40\\\\udc41')
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _spelt(char) for char in text)


def _spelt(char: str) -> str:
    digits = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{digits[at : at + 4]}" for at in range(0, len(digits), 4))
