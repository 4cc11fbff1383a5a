"""Errors that a user can act on.

A :class:`UserError` is printed as one line by every entry point and ends it with exit status 2; anything else that
escapes is a bug and keeps its traceback.
"""

from __future__ import annotations


class UserError(Exception):
    """One mistake in the input or the surroundings: what is wrong, where, and what to do about it.

    Args:
        problem: what is wrong, in a few words.
        file: the file that holds it.
        key: the key, column or line inside that file.
        value: the offending value.
        remedy: what the user can do.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: object = None,
        key: object = None,
        value: object = None,
        remedy: str | None = None,
    ) -> None:
        where = ": ".join(str(part) for part in (file, key) if part is not None)
        text = f"{where}: {problem}" if where else problem
        if value is not None:
            text += f" (got {value!r})"
        if remedy:
            text += f". {remedy[0].upper()}{remedy[1:]}"
        super().__init__(text if text.endswith((".", "!", "?")) else text + ".")
        self.problem = problem
        self.file = file
        self.key = key
        self.value = value
        self.remedy = remedy
