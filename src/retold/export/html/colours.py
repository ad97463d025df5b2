"""Code in colours, as classes that the style sheet knows: in other languages, or very long, it stays as it is."""

import os
from functools import cache

from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LONGEST = 20_000
"""The longest code that is coloured: a lexer may take long over what is no code at all."""
_LONGEST_LINE = 2_000
LANGUAGES = frozenset(
    (
        "bash", "c", "clojure", "cmake", "console", "cpp", "csharp", "css", "dart", "diff", "docker", "elixir",
        "erlang", "fish", "fsharp", "go", "graphql", "groovy", "haskell", "hcl", "html", "http", "ini", "java",
        "javascript", "js", "json", "jsx", "julia", "kotlin", "less", "lua", "make", "markdown", "md", "nginx", "nix",
        "objective-c", "ocaml", "perl", "php", "powershell", "properties", "protobuf", "ps1", "py", "pycon", "python",
        "r", "rb", "rs", "ruby", "rust", "scala", "scss", "sh", "shell", "sql", "swift", "terraform", "toml", "ts",
        "tsx", "typescript", "vim", "xml", "yaml", "yml", "zig", "zsh",
    )
)  # fmt: skip
"""What people write: a transcript does not choose among all lexers there are."""
_ENDINGS = {
    "cc": "cpp", "cs": "csharp", "dockerfile": "docker", "ex": "elixir", "h": "c", "hpp": "cpp", "hs": "haskell",
    "htm": "html", "kt": "kotlin", "makefile": "make", "mjs": "js", "mk": "make", "proto": "protobuf", "tf": "terraform",
}  # fmt: skip
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


def coloured(code: str, language: str) -> Markup:
    """Return code in colours, its every character escaped; it must have been made visible before."""
    lexer = _lexer(language) if language in LANGUAGES and _is_short(code) else None
    if lexer is None:
        return escape(code)
    return Markup(highlight(code, lexer, _FORMATTER).removesuffix("\n"))  # noqa: S704 - Pygments escapes it


def language_of(path: str) -> str:
    """Return the language that a file's name tells; nothing where it tells none that we know."""
    name = os.path.basename(path.replace("\\", "/")).lower()
    ending = name.rpartition(".")[2]
    language = _ENDINGS.get(ending, ending)
    return language if language in LANGUAGES else ""


@cache
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:  # in another version of Pygments it may have another name
        return None


def _is_short(code: str) -> bool:
    return len(code) <= LONGEST and max(map(len, code.split("\n"))) <= _LONGEST_LINE
