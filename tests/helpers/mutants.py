"""Changes one expression or statement of one function, found by name and by syntax: moved lines and new layout break nothing."""

from __future__ import annotations

import ast
from pathlib import Path


class NoSuchPlace(AssertionError):
    """The function is not there, or what is to be changed does not stand in it exactly once."""


def mutated(source: str, function: str, original: str, mutant: str) -> str:
    """``source`` with ``original`` replaced by ``mutant`` in ``function`` (``name`` or ``Class.name``).

    ``original`` is a whole expression or statement, compared as syntax.
    """
    tree = ast.parse(source)
    body = functions(tree).get(function)
    if body is None:
        raise NoSuchPlace(f"there is no function {function}: update the mutant")
    wanted, replacement = _syntax(original), _syntax(mutant)
    finder = _Replace(ast.dump(wanted), replacement)
    finder.visit(body)
    if finder.found != 1:
        raise NoSuchPlace(
            f"`{original}` stands {finder.found} times in {function}, not once. Update the mutant: give a whole expression "
            f"or statement of it, one that it holds once:\n{ast.unparse(body)}"
        )
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def functions(tree: ast.AST, within: str = "") -> dict[str, ast.AST]:
    """Every function and class of a module by its qualified name; those inside functions as ``outer.inner``."""
    found: dict[str, ast.AST] = {}
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[within + node.name] = node
            found |= functions(node, f"{within}{node.name}.")
        elif not isinstance(node, ast.expr):
            found |= functions(node, within)
    return found


def homes(package: Path, function: str) -> list[str]:
    """The modules of a package that have a function of this name: where it may have moved to."""
    name = function.rpartition(".")[2]
    sources = ((path, path.read_text(encoding="utf-8")) for path in package.rglob("*.py"))
    return sorted(
        str(path.relative_to(package))
        for path, source in sources
        if f" {name}" in source and function in functions(ast.parse(source))
    )


def _syntax(code: str) -> ast.AST:
    (statement,) = ast.parse(code).body
    return statement.value if isinstance(statement, ast.Expr) else statement


class _Replace(ast.NodeTransformer):
    def __init__(self, wanted: str, replacement: ast.AST) -> None:
        self.wanted, self.replacement, self.found = wanted, replacement, 0

    def visit(self, node: ast.AST) -> ast.AST:
        whole = isinstance(node, ast.Expr) and isinstance(self.replacement, ast.stmt)
        if ast.dump(node.value if whole else node) == self.wanted:  # type: ignore[attr-defined]
            self.found += 1
            return self.replacement
        return self.generic_visit(node)
