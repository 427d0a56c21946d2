"""Writes docs/settings.md and docs/errors.md from the code; a test fails when they are not the newest."""

from __future__ import annotations

from pathlib import Path

import holdfast.app  # noqa: F401 - brings every room, and with it every room's errors
from holdfast.errors import catalogue
from holdfast.settings_sources import rows

DOCS = Path(__file__).resolve().parent.parent / "docs"


def settings_page() -> str:
    lines = [
        "# Settings",
        "",
        (
            "Made from `holdfast/settings/` by `make docs`. A flag wins over the environment, the environment over"
            " the TOML file, the file over the default; an unknown name is an error. `holdfast settings` shows"
            " every value and where it came from."
        ),
        "",
        "| setting | environment | default | meaning |",
        "|---|---|---|---|",
    ]
    for row in rows():
        default = ", ".join(row.default) if isinstance(row.default, tuple) else row.default
        shown = str(default).lower() if isinstance(default, bool) else default
        cell = f"`{shown}`" if shown != "" else ""
        meaning = row.help.replace("|", "\\|") + (" (secret: never shown)" if row.secret else "")
        lines.append(f"| `{row.name}` | `{row.variable}` | {cell} | {meaning} |")
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    lines = [
        "# Errors",
        "",
        (
            "Made from `holdfast/errors.py` and each room's `errors.py` by `make docs`. The numbers and the words never"
            " change their meaning; the sentence may be more exact when the place where it happened knows more."
        ),
        "",
        "| HTTP | code | reason | message |",
        "|---|---|---|---|",
    ]
    for code, kind in catalogue().items():
        message = " ".join((kind.__doc__ or "").split()).replace("|", "\\|")
        lines.append(f"| {kind.status} | {code} | `{kind.reason}` | {message} |")
    return "\n".join(lines) + "\n"


PAGES = {"settings.md": settings_page, "errors.md": errors_page}


def main() -> None:
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
