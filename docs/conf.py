"""How the site is made: `make docs`. Pages are Markdown, tutorials are notebooks run while the site is built,
the reference comes from docstrings. Strict: a broken link, a failing notebook or any other warning fails."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from docutils import nodes

import surelist

project = "surelist"
author = "the surelist authors"
copyright = author
release = surelist.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = []

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

nb_execution_mode = "cache"


def package_digest() -> str:
    """Outputs of notebooks are kept only as long as the package they were made with is the same."""
    modules = sorted(Path(surelist.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in modules)).hexdigest()[:16]


nb_execution_cache_path = str(Path(__file__).parents[1] / ".cache" / "jupyter" / package_digest())
nb_execution_in_temp = True
nb_execution_timeout = 180
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_execution_show_tb = True
nb_output_stderr = "remove"

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}  # inherited ones where a template asks
napoleon_google_docstring = False
napoleon_use_param = False  # parameters that are described together stay together

copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = "surelist"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
templates_path = ["_templates"]

THEORY = re.compile(r"\[theory: ([a-z-]+)\]")
ANCHOR = re.compile(r"^(#+ .*?) \{#([a-z-]+)\}$", re.M)


def anchors(app: Any, page: str, source: list[str]) -> None:
    """Headings name themselves as ``## Title {#id}``; Sphinx wants the id on the line before."""
    source[0] = ANCHOR.sub(r"(\2)=\n\1", source[0])


def theory(app: Any, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """A docstring's ``[theory: id]`` becomes a link to the proof."""
    lines[:] = [THEORY.sub(r":ref:`[\1] <\1>`", line) for line in lines]


def skipped(app: Any, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Methods that scikit-learn adds for its own routing are described in its own reference."""
    return True if re.fullmatch(r"set_\w+_request|score", name) else None


def examples(app: Any, context: object, lines: list[str]) -> None:
    """The example in a command's help, as a block that can be copied."""
    as_code(app, context, lines)
    for at in [place for place, line in enumerate(lines) if line == "| Example:"][::-1]:
        end = next((to for to, line in enumerate(lines) if to > at and not line.startswith("|")), len(lines))
        block = [line.removeprefix("|") for line in lines[at + 1 : end]]
        lines[at:end] = [".. code-block:: shell", "", *block, ""]


def as_code(app: Any, context: object, lines: list[str]) -> None:
    """Flags in a help text as code: elsewhere two dashes become one long one."""
    for at, line in enumerate(lines):
        if not line.startswith((".. option::", "|")) and "``" not in line:
            lines[at] = re.sub(r"(?<![\w-])--[a-z][\w-]*", r"``\g<0>``", line)


def sentences(app: Any, tree: Any, page: str) -> None:
    """What was printed may wrap, but for tables of numbers; code keeps its lines."""
    for block in tree.findall(nodes.literal_block):
        plain = block.get("language") in ("text", "none", "console", "myst-ansi")
        if plain and not re.search(r"\S {3,}\S", block.astext()):
            block["classes"].append("sentences")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("sphinx-click-process-description", examples)
    app.connect("sphinx-click-process-options", as_code)
    app.connect("doctree-resolved", sentences)
    app.connect("source-read", anchors)
    app.connect("autodoc-process-docstring", theory)
    app.connect("autodoc-skip-member", skipped)
