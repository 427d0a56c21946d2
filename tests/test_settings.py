"""Settings: what wins over what, what is refused and how it is said, and that each one is documented."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import CannotStart
from holdfast.settings import Settings
from holdfast.settings_sources import Row, load, rows
from scripts.write_reference import DOCS, PAGES

NUMBER = "store.queue_limit"
VARIABLE = "HOLDFAST_STORE_QUEUE_LIMIT"


def file_with(folder: Path, text: str) -> Path:
    file = folder / "holdfast.toml"
    file.write_text(text)
    return file


@given(flag=st.booleans(), variable=st.booleans(), in_file=st.booleans())
def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(
    tmp_path_factory: pytest.TempPathFactory, flag: bool, variable: bool, in_file: bool
) -> None:
    file = file_with(tmp_path_factory.mktemp("settings"), "[store]\nqueue_limit = 1\n") if in_file else None
    loaded = load({NUMBER: "3"} if flag else None, {VARIABLE: "2"} if variable else None, file)
    expected, origin = (10_000, "default")
    if in_file:
        expected, origin = 1, f"file {file}"
    if variable:
        expected, origin = 2, f"environment {VARIABLE}"
    if flag:
        expected, origin = 3, "command line"
    assert loaded.settings.store.queue_limit == expected
    assert loaded.origins[NUMBER] == origin
    assert loaded.origins["store.pool"] == "default"


def test_without_any_source_all_is_as_documented() -> None:
    loaded = load()
    assert loaded.settings == Settings()
    for row in rows():
        assert loaded.value(row) == row.default


@pytest.mark.parametrize(
    ("flags", "environ", "text", "named"),
    [
        ({"store.quee_limit": "5"}, {}, "", ["command line", "store.quee_limit"]),
        ({}, {"HOLDFAST_STORE_QUEE_LIMIT": "5"}, "", ["environment", "HOLDFAST_STORE_QUEE_LIMIT"]),
        ({}, {}, "[store]\nquee_limit = 5", ["holdfast.toml", "store.quee_limit"]),
        ({}, {}, "quee_limit = 5", ["holdfast.toml", "quee_limit"]),
        ({}, {}, "store = 5", ["holdfast.toml", "store"]),
        ({}, {}, "[shop]\nopen = true", ["holdfast.toml", "shop.open"]),
    ],
)
def test_an_unknown_key_is_refused_in_each_source_by_its_name(
    tmp_path: Path, flags: dict[str, str], environ: dict[str, str], text: str, named: list[str]
) -> None:
    with pytest.raises(CannotStart) as refused:
        load(flags, environ, file_with(tmp_path, text))
    for name in named:
        assert name in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("store.queue_limit", "0"),
        ("store.queue_limit", "many"),
        ("store.queue_limit", "1.5"),
        ("store.connect_timeout", "-1"),
        ("listen.http", "8000"),
        ("listen.http", "127.0.0.1:port"),
        ("auth.registration", "sometimes"),
        ("auth.single_device", "perhaps"),
        ("log.level", "loud"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence_with_the_source_and_the_name(name: str, value: str) -> None:
    variable = next(row.variable for row in rows() if row.name == name)
    with pytest.raises(CannotStart) as refused:
        load(environ={variable: value})
    assert str(refused.value).startswith(f"environment {variable}: {name}: ")
    assert "\n" not in str(refused.value)


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(CannotStart) as refused:
        load(file=file_with(tmp_path, "[auth]\nsecret = ['hunter2']"))
    assert "auth.secret" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("text", ["[store", "store = = 5", "\xff"])
def test_a_file_that_is_no_toml_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "holdfast.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(CannotStart, match=r"holdfast\.toml"):
        load(file=file)


def test_a_file_that_is_not_there_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="nowhere"):
        load(file=tmp_path / "nowhere.toml")


def test_words_of_the_environment_become_what_the_setting_is() -> None:
    loaded = load(
        environ={
            "HOLDFAST_AUTH_SINGLE_DEVICE": "true",
            "HOLDFAST_STORE_CONNECT_TIMEOUT": "2.5",
            "HOLDFAST_AUTH_PREVIOUS_KEY_FILES": "a.pem, b.pem,",
            "HOLDFAST_LISTEN_HTTP": "[::1]:0",
            "HOME": "/nobody",
        }
    ).settings
    assert loaded.auth.single_device is True
    assert loaded.store.connect_timeout == 2.5
    assert loaded.auth.previous_key_files == ("a.pem", "b.pem")
    assert loaded.listen.http == "[::1]:0"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_each_setting_is_documented_and_has_a_name_in_the_environment(row: Row) -> None:
    assert len(row.help) > 8
    assert row.variable == "HOLDFAST_" + row.name.replace(".", "_").upper()
    assert f"| `{row.name}` | `{row.variable}` |" in (DOCS / "settings.md").read_text()


def test_no_two_settings_share_a_variable() -> None:
    variables = [row.variable for row in rows()]
    assert len(set(variables)) == len(variables)


def test_what_gives_access_is_marked_as_a_secret() -> None:
    secrets = {row.name for row in rows() if row.secret}
    assert {"store.url", "auth.secret", "blobs.access_key", "blobs.secret_key"} <= secrets
    assert not any(row.default for row in rows() if row.secret)


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_made_from_the_code_are_the_newest(page: str) -> None:
    assert (DOCS / page).read_text("utf-8") == PAGES[page](), "run `make docs`"
