"""The commit that a result is of: the newest of more than pages and results, which .ci/not-code lists."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_CODE = ROOT / ".ci" / "not-code"
COMMIT_LETTERS = 12


def commit_of(root: Path = ROOT) -> str:
    """Its 12 first letters, with "with changes" where files differ from it; "" outside a checkout."""
    left_out = ["--", ".", *(f":!{path}" for path in NOT_CODE.read_text().split())]
    commit = _git(root, "log", "-1", f"--abbrev={COMMIT_LETTERS}", "--format=%h", *left_out)
    changed = _git(root, "status", "--porcelain", "--untracked-files=no", *left_out)
    return commit + (" with changes" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()
