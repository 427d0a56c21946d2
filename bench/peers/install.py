"""Peers are installed when they are asked for: Debian packages as root, PyPI and npm into `.bench/`.

What cannot be had here raises `PeerUnavailable`: the scenario then says so and goes on without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.processes import WORK

INSTALL_SECONDS = 600
POLICY = Path("/usr/sbin/policy-rc.d")


class PeerUnavailable(Exception):
    """This peer cannot be installed here; the message says why."""


def debian(program: str, *packages: str) -> Path:
    """The program's path, from the named packages if it is absent (services are not started)."""
    for folder in ("", "/usr/sbin", "/usr/local/sbin"):
        if path := shutil.which(program, path=folder or None):
            return Path(path)
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise PeerUnavailable(f"{program} is not here: install {' '.join(packages)} (needs root and apt-get)")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _no_service_starts():
        _run(["apt-get", "update", "-qq"], env)
        _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], env)
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin")
    if path is None:
        raise PeerUnavailable(f"{' '.join(packages)} did not bring {program}")
    return Path(path)


def pypi(name: str, *requirements: str) -> Path:
    """The `bin` folder of a virtual environment of its own that holds `requirements`."""
    folder = WORK / "pypi" / name
    if not _is_complete(folder, requirements):
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(folder)])
        pip = [
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        _run([*pip, *requirements])
        _complete(folder, requirements)
    return folder / "bin"


def npm(name: str, *packages: str) -> Path:
    """A folder whose `node_modules` holds `packages`."""
    if shutil.which("npm") is None:
        raise PeerUnavailable("npm is not here: install nodejs and npm")
    folder = WORK / "npm" / name
    if not _is_complete(folder, packages):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages])
        _complete(folder, packages)
    return folder


def _is_complete(folder: Path, wanted: Sequence[str]) -> bool:
    """The file says what was installed: a change of versions, or a half installation, starts over."""
    mark = folder / "installed"
    return mark.exists() and mark.read_text().split("\n") == list(wanted)


def _complete(folder: Path, wanted: Sequence[str]) -> None:
    (folder / "installed").write_text("\n".join(wanted))


def _run(command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS, env=env
        )
    except subprocess.TimeoutExpired:
        raise PeerUnavailable(f"{command[0]} took longer than {INSTALL_SECONDS} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip()[-400:]
        raise PeerUnavailable(f"{' '.join(command[:4])} … failed: {said}")


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Debian starts what it installs, on the ports that everybody uses; not while this file says no."""
    if POLICY.exists():
        yield
        return
    with tempfile.NamedTemporaryFile("w", dir=POLICY.parent, delete=False) as file:
        file.write("#!/bin/sh\nexit 101\n")
    part = Path(file.name)
    part.chmod(0o755)
    part.rename(POLICY)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
