"""Dataclasses that hold numpy arrays are compared by identity: arrays have no truth value, so `==` of their
fields raises, on Python 3.13 even where both are the same array."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import icestream

ROOT = Path(icestream.__file__).parent
_ALIAS = re.compile(r"^(\w+)\s*=\s*np\.ndarray\[", re.MULTILINE)


def _dataclasses(tree: ast.AST) -> Iterator[tuple[ast.ClassDef, str]]:
    for node in ast.walk(tree):
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            text = ast.unparse(decorator)
            if re.match(r"(dataclasses\.)?dataclass\b", text):
                assert isinstance(node, ast.ClassDef)
                yield node, text


def _is_array(statement: ast.stmt, names: re.Pattern[str]) -> bool:
    if not isinstance(statement, ast.AnnAssign) or "compare=False" in ast.unparse(statement):
        return False
    return names.search(ast.unparse(statement.annotation)) is not None


def test_dataclasses_with_arrays_are_compared_by_identity() -> None:
    sources = {path: path.read_text() for path in ROOT.rglob("*.py")}
    aliases = {name for text in sources.values() for name in _ALIAS.findall(text)}
    assert {"Indexes", "Flags"} <= aliases
    names = re.compile(rf"\b({'|'.join(sorted(aliases))})\b|\bnp\.ndarray\b|\bNDArray\b")
    holders = {
        f"{path.relative_to(ROOT)}: {node.name}": "eq=False" in decorator
        for path, text in sources.items()
        for node, decorator in _dataclasses(ast.parse(text))
        if any(_is_array(statement, names) for statement in node.body)
    }
    assert "records/records.py: Records" in holders
    assert [name for name, is_by_identity in holders.items() if not is_by_identity] == []
