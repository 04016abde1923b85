"""A hook of two builds: polyrhythm-nodes and polyrhythm-bridges take what all share from the pyproject.toml above them.

To the licence each adds those of what others made and it carries.

Each asks for the others in exactly this version. Its local label (`+checkout`) is what no package index takes: nobody
else's package of that name can stand in, and where ours is not there, an installation refuses.
"""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

SHARED = ("version", "requires-python", "license", "license-files", "authors", "classifiers")


class OneVersion(MetadataHookInterface):
    """`on` in the hook's table names the packages of ours that are needed, `libraries` the others."""

    def update(self, metadata: dict[str, Any]) -> None:
        above = tomllib.loads((Path(self.root).parent / "pyproject.toml").read_text())["project"]
        metadata |= {name: above[name] for name in SHARED}
        carried = [*runpy.run_path(str(Path(__file__).with_name("third_parties.py")))["third_parties"](Path(self.root))]
        metadata["license"] = " AND ".join([above["license"], *sorted({one.licence for one in carried})])
        metadata["license-files"] = [*above["license-files"], *sorted({one.file for one in carried})]
        ours = [f"{name}=={above['version']}" for name in self.config["on"]]
        metadata["dependencies"] = ours + self.config.get("libraries", [])
