"""The conformance table says nothing that is not so: its rows and tests exist, and no statement is there twice."""

import ast
import re
from pathlib import Path

import pytest

from tests.broker.wire_bad import BAD, FIRST
from tests.broker.wire_good import GOOD

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "mqtt-conformance.md").read_text()
V5, V311 = (part.split("\n## ")[0] for part in re.split(r"\n## MQTT (?:5\.0|3\.1\.1) ", TEXT)[1:])
WIRE = {row.name for row in (*GOOD, *BAD, *FIRST)}


def statements(part: str) -> list[tuple[str, str]]:
    """Statement and what holds it, row by row."""
    return re.findall(r"^\| (MQTT-[\d.]+-\d+) \| .* \| (.*) \|$", part, flags=re.M)


def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / "broker" / f"{file}.py").read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return names | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@pytest.mark.parametrize("part", [V5, V311], ids=["5.0", "3.1.1"])
def test_every_statement_is_there_once_and_says_what_holds_it(part: str) -> None:
    found = statements(part)
    assert len(found) == part.count("\n| MQTT-") == int(part[1 : part.index(" ")])
    names = [name for name, _ in found]
    assert len(set(names)) == len(names)
    assert all(held for _, held in found)


@pytest.mark.parametrize("part", [V5, V311], ids=["5.0", "3.1.1"])
def test_what_holds_a_statement_is_a_row_a_test_or_a_reason(part: str) -> None:
    """Nothing is left for later, and no cell is something else: each piece is one of the four."""
    piece = re.compile(r"wire: [^;|`]+|`test_\w+::\w+`|client's duty|does not apply: [^;|`]+")
    odd = {
        name: held
        for name, held in statements(part)
        if not all(piece.fullmatch(each) for each in held.split("; "))
    }
    assert odd == {}


def test_every_wire_row_named_exists() -> None:
    named = {name.strip() for name in re.findall(r"wire: ([^;|]+)", V5 + V311)}
    assert named
    assert named <= WIRE


def test_every_test_named_exists() -> None:
    named = set(re.findall(r"`(test_\w+)::(\w+)`", V5 + V311))
    assert named
    assert {(file, test) for file, test in named if test not in names_in(file)} == set()


def test_a_refusal_names_a_statement_of_the_table_or_a_section() -> None:
    known = {name for name, _ in statements(V5)} | {f"{name} (3.1.1)" for name, _ in statements(V311)}
    clauses = {row.clause for row in (*BAD, *FIRST)}
    assert {clause for clause in clauses if clause.startswith("MQTT-")} <= known
