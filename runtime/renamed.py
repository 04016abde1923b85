"""Old names of classes and modules, which are told in one sentence for one version: "X is now Y"."""

from __future__ import annotations

import sys
from functools import cache

TYPE_CHECKING = False  # see `runtime`
if TYPE_CHECKING:
    from typing import Literal


def renamed(kind: Literal["names", "modules", "exports"]) -> dict[str, str]:
    """What was called otherwise in the version before, by its old name: "module:Class", modules, our exports."""
    import tomllib  # not at the top: an emergency stop at a terminal does without, and starts sooner
    from pathlib import Path

    found: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())[kind]
    return found


RENAMED_FILE = __file__
"""Where an import of an old module is refused, which is never where it stands."""


@cache
def name_today(name: str) -> str:
    """What a recording calls "module:Class", by the module's name of today: one of the version before knew another."""
    module, colon, qualname = name.partition(":")
    return renamed("modules").get(module, module) + colon + qualname


class OldModules:
    """Asked last for a module that nobody has: says what an old one of ours is called now."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raises ModuleNotFoundError with the new name, for an old one."""
        if name.partition(".")[0] in ("runtime", "nodes", "bridges") and name in renamed("modules"):
            raise ModuleNotFoundError(f"module {name!r} is now {renamed('modules')[name]!r}", name=name)


def tell_old_modules() -> None:
    """From now on an import of an old module is told its new name."""
    if not any(getattr(one, "__name__", "") == OldModules.__name__ for one in sys.meta_path):
        sys.meta_path.append(OldModules)


def tell_old_export(name: str) -> None:
    """Raises ImportError with the new place, for what `runtime` exported before."""
    if (now := renamed("exports").get(name)) is not None:
        raise ImportError(f"{name!r} of 'runtime' is now {now!r}")
