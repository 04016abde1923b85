"""Key files: the secret keys of this machine's hosts, readable by this user only. Launch files have the public ones."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import zmq

from runtime.errors import UserError, choices
from runtime.operating_system.machine import home

FOLDER_VARIABLE = "POLYRHYTHM_KEYS"
_SUFFIX = ".secret"
_SECRET = re.compile(r"[!-~]{40}")


def folder() -> Path:
    """The folder of the keys: `$POLYRHYTHM_KEYS`, or the user's configuration folder."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or home() / ".config") / "polyrhythm" / "keys"


def make(name: str) -> str:
    """Make a key for a host and return its public part. Raises UserError where there is one already."""
    public, secret = zmq.curve_keypair()
    path = folder() / f"{name}{_SUFFIX}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as problem:
        raise UserError(f"{path} is there already; `polyrhythm keys show {name}` prints its public part") from problem
    except OSError as problem:
        raise UserError(f"{path} cannot be written: {problem.strerror}") from problem
    with os.fdopen(file, "wb") as opened:
        opened.write(secret + b"\n")
    return public.decode()


def names() -> list[str]:
    """The hosts for which this machine has keys."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in folder().glob(f"*{_SUFFIX}"))


def secret_of(name: str) -> str:
    """The secret key of a host. Raises UserError where it is missing, or where others could read it."""
    path = folder() / f"{name}{_SUFFIX}"
    try:
        mode = path.stat().st_mode
        secret = path.read_text(encoding="ascii").strip()
    except FileNotFoundError as problem:
        there = choices(names()) if names() else "none"
        raise UserError(f"{path}: no such key; run `polyrhythm keys new {name}` here (keys here: {there})") from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{path} cannot be read as a key: {problem}") from problem
    if stat.S_IMODE(mode) & 0o077:
        raise UserError(f"{path} can be read by others; run: chmod 600 {path}")
    if not _SECRET.fullmatch(secret):
        raise UserError(f"{path} holds no key; remove it and run `polyrhythm keys new {name}`")
    return secret


def public_of(name: str) -> str:
    """The public part of a host's key. Raises UserError as `secret_of` does."""
    return zmq.curve_public(secret_of(name).encode()).decode()


def secret_for(name: str, public: str) -> str:
    """The secret key that belongs to this public key. Raises UserError where they do not belong together."""
    if public_of(name) != public:
        raise UserError(
            f"the key of {name!r} in {folder()} is not the one in the launch file's [hosts.{name}]; "
            f"write key = {public_of(name)!r} there, or copy the right {name}{_SUFFIX} here"
        )
    return secret_of(name)
