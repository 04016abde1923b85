"""What the site has besides docs/: the project's own pages, the API from docstrings, and the decisions in the menu.

Links that lead out of docs/ go to those pages, or become the name of a file.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = {
    "assets/mermaid.min.js": ROOT / ".site" / "package" / "dist" / "mermaid.min.js",  # draws the diagrams
    "assets/iframe-worker.js": ROOT / ".site" / "package" / "shim" / "index.js",  # search in a page without a server
}
"""What the theme would fetch from elsewhere while a page is read."""
SHIM = "https://unpkg.com/iframe-worker/shim"
PROJECT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md")
API = {
    "runtime": "What a node is made of: messages, ports, handlers, time, graphs, services and goals.",
    "nodes.msgs": "The messages of robots, voices and interrupts.",
    "nodes.msgs.episode": "The messages of episodes.",
    "nodes.robot.protocol": "What a robot of your own has to be able to do.",
    "nodes.guard.node": "The guard and its parameters.",
}
"""Module -> what its page says first."""
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<href>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Put every decision and the pages of the API into the menu."""
    for part in config.nav:
        if "Decisions" in part:
            part["Decisions"] = [f"decisions/{file.name}" for file in sorted((ROOT / "docs/decisions").glob("*.md"))]
        if "Reference" in part:
            part["Reference"] += [{module: f"reference/{module}.md"} for module in API]
    if all(file.is_file() for file in SCRIPTS.values()):
        config.extra_javascript.append("assets/mermaid.min.js")
    if "MIKE_DOCS_VERSION" in os.environ:  # one version among several
        config.extra["version"] = {"provider": "mike"}
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that docs/ does not have."""
    for page in PROJECT:
        text = (ROOT / page).read_text(encoding="utf-8")
        files.append(File.generated(config, f"project/{page}", content=_moved(text, page)))
    for place, file in SCRIPTS.items():
        if file.is_file():
            files.append(File.generated(config, place, content=file.read_text(encoding="utf-8")))
    for module, says in API.items():
        files.append(File.generated(config, f"reference/{module}.md", content=_reference(module, says)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Lead links out of docs/ to where the site has what they mean."""
    source: str = page.file.src_uri
    if source.startswith(("project/", "reference/")):
        return markdown
    return LINK.sub(lambda found: _link(found, f"docs/{source}", source), markdown)


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """The search's own script comes with the site, where it is there."""
    if not SCRIPTS["assets/iframe-worker.js"].is_file():
        return output
    return output.replace(SHIM, posixpath.relpath("assets/iframe-worker.js", posixpath.dirname(page.url) or "."))


def _moved(text: str, page: str) -> str:
    """A page of the project as it stands in the site, where docs/ is one folder up."""
    return LINK.sub(lambda found: _link(found, page, f"project/{page}"), text)


def _link(found: re.Match[str], place: str, target: str) -> str:
    """The link of a page that lies at `place` in the project and at `target` in the site."""
    text, href, anchor = found["text"], found["href"], found["anchor"] or ""
    if "://" in href or href.startswith("mailto:"):
        return found[0]
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(place), href))
    here = posixpath.dirname(target) or "."
    if meant.startswith("docs/") and (ROOT / meant).is_file():
        return f"[{text}]({posixpath.relpath(meant.removeprefix('docs/'), here)}{anchor})"
    if meant in PROJECT:
        return f"[{text}]({posixpath.relpath(f'project/{meant}', here)}{anchor})"
    if not (ROOT / meant).exists():
        return found[0]  # for the site's own check of links, which names it
    return text if meant in text else f"{text} (`{meant}`)"  # a file of the repository


def _reference(module: str, says: str) -> str:
    options = "      show_root_heading: false\n      show_root_toc_entry: false\n"
    return f"# {module}\n\n{says}\n\n::: {module}\n    options:\n{options}"
