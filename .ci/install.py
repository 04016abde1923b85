"""Install requirements into the environment of this Python: with uv, else with pip.

uv needs a fifth of pip's processor time for what tests and measurements need. It is told what pip is told on this
machine: indexes, folders, constraints, certificates. Where it cannot be had, or does not succeed, pip does the work.

usage: python .ci/install.py ARGUMENT...      as those of `pip install`
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
OPTIONS = {
    "index-url": "--default-index",
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "constraint": "--constraints",
    "trusted-host": "--allow-insecure-host",
}
"""What pip's settings are called by uv."""


def settings() -> dict[str, str]:
    """What pip is told by its files and by the environment; the environment comes last, and counts."""
    told = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True, check=True).stdout
    rows = [line.partition("=") for line in told.splitlines() if "=" in line]
    rows.sort(key=lambda row: row[0].startswith(":env:"))
    return {name.rpartition(".")[2]: str(ast.literal_eval(value)) for name, _, value in rows}


def with_uv(arguments: list[str]) -> bool:
    """Whether uv has installed it."""
    told = settings()
    options = [word for name, option in OPTIONS.items() for one in told.get(name, "").split() for word in (option, one)]
    options += ["--index-strategy", "unsafe-best-match"]  # of all indexes the newest, as with pip
    where = {"UV_NATIVE_TLS": "1", **({"SSL_CERT_FILE": told["cert"]} if "cert" in told else {})}
    python = ["--python", sys.executable]
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", *python, *options, *arguments]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    have = [*PIP, "install", "--quiet", "--no-compile", "uv>=0.9"]
    return all(subprocess.run(do, env=os.environ | where, **quiet).returncode == 0 for do in (have, install))


def main() -> int:
    """Return 0 if all is installed."""
    arguments = sys.argv[1:]
    if with_uv(arguments):
        return 0
    return subprocess.run([*PIP, "install", "--quiet", "--no-compile", *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main())
