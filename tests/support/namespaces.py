"""What `unshare` may do here: nothing without root, nor in most containers, nor in a chroot."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import pytest


@cache
def skip_without(*kinds: str) -> pytest.MarkDecorator:
    """Skips a test where namespaces of these kinds, as options of `unshare`, cannot be made."""
    said = "there is no unshare"
    if shutil.which("unshare") is not None:
        done = subprocess.run(("unshare", *kinds, "true"), capture_output=True, text=True, check=False)
        said = done.stderr.strip() if done.returncode else ""
    return pytest.mark.skipif(bool(said), reason=f"no namespaces ({' '.join(kinds)}) can be made here: {said}")
