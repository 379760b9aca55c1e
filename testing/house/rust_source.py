"""Just enough of Rust's syntax to measure it: where functions begin and end."""

import re
from typing import NamedTuple

# Comments, strings and characters, in the order in which they must be tried. A lifetime ('a) is no
# character: it has no closing quote.
OPAQUE = re.compile(
    r"""
      //[^\n]*
    | /\*.*?\*/
    | b?r(?P<hashes>\#*)".*?"(?P=hashes)
    | b?"(?:\\.|[^"\\])*"
    | b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'
    """,
    re.VERBOSE | re.DOTALL,
)
FUNCTION = re.compile(r"\bfn\s+(\w+)")


class Function(NamedTuple):
    """A function with a body, and its first and last line, counted from 1."""

    name: str
    first: int
    last: int

    @property
    def lines(self):
        """Lines from `fn` to the closing brace."""
        return self.last - self.first + 1


def bare(text):
    """The text with comments, strings and characters blanked; its lines stay where they are."""
    return OPAQUE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def functions(text):
    """Every function with a body, those inside others included."""
    code = bare(text)
    for match in FUNCTION.finditer(code):
        opening = body_of(code, match.end())
        if opening is not None:
            first = code.count("\n", 0, match.start()) + 1
            yield Function(match.group(1), first, code.count("\n", 0, closing(code, opening)) + 1)


def body_of(code, start):
    """Where the body opens; None for a declaration that ends with a semicolon."""
    depth = 0
    for at in range(start, len(code)):
        char = code[at]
        depth += (char in "([") - (char in ")]")
        if depth == 0 and char in "{;":
            return at if char == "{" else None
    return None


def closing(code, opening):
    """Where the brace that opens at `opening` closes."""
    depth = 0
    for at in range(opening, len(code)):
        depth += (code[at] == "{") - (code[at] == "}")
        if depth == 0:
            return at
    raise ValueError("a brace that never closes")
