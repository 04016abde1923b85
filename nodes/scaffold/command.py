"""`polyrhythm new`: write a small project of your own: nodes, a launch file, a test."""

from __future__ import annotations

import argparse
import builtins
import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from runtime import __version__
from runtime.command_line.arguments import command
from runtime.errors import UserError, writing

TEMPLATES = Path(__file__).parent / "templates"
PLAIN = "node"
KINDS = {
    PLAIN: "two nodes of your own and a message",
    "robot": "limits and class of a robot, its driver behind a guard, and a policy that waves",
    "policy": "a control policy behind the guard, on a simulated Stretch, and who asks it to act",
    "planner": "a planner that asks a model, and makes a subtask of its answer",
    "vlm": "eyes that look for what a subtask names, and point a policy at it",
    "scenario": "two people with goals of their own, an episode of them, and a measure of it",
    "scenario-of-three": "the same with three people, whom one number binds",
}
"""What can be made, by the names of the folders in `templates`; each folder is laid over `templates/common`."""
BENEATH = {"scenario-of-three": ("scenario",)}
"""What else lies beneath a folder, and holds what the two have in common."""
RUN = "polyrhythm run {name}.toml --for 5"
NEXT = {
    PLAIN: (RUN, "polyrhythm run {name}.toml --for 5 --virtual    # at once"),
    "robot": ("polyrhythm run {name}.toml --for 30", 'polyrhythm say "Stop!"    # in another terminal, while it waves'),
    "policy": (RUN,),
    "planner": (
        "export OPENAI_API_KEY=...    # or OPENAI_BASE_URL and OPENAI_MODEL for a server of your own",
        "polyrhythm run {name}.toml",
        'polyrhythm say "Bring me the red cup"    # in another terminal',
    ),
    "vlm": ("polyrhythm run laptop --set vlm.use={name}.eyes:Eyes    # in the whole demo",),
    "scenario": ("polyrhythm run {name}.toml",),
    "scenario-of-three": ("polyrhythm run {name}.toml --virtual",),
}
"""What is typed after `check`, by kind; then its test, and the file to begin in."""
BEGINS_IN = {
    PLAIN: "nodes",
    "robot": "robot",
    "policy": "policy",
    "planner": "planner",
    "vlm": "eyes",
    "scenario": "talk",
    "scenario-of-three": "talk",
}
NAME, CLASS = "my_robot", "MyRobot"
"""What the templates call the project; every place of these two words is given the user's name."""
VERSION = "OUR_VERSION"
OURS = ("runtime", "nodes", "bridges", "polyrhythm")


@command("new", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0 where the project stands there; 2 where its name or its folder cannot be had."""
    name, kind = asked.name, asked.kind
    check_name(name)
    check_class_name(name, kind)
    folder = Path(name)
    if folder.exists() or folder.is_symlink():
        raise UserError(f"{folder} is there already, and nothing in it is touched; take another name or folder")
    with writing(folder, "start from another folder"):
        written = write_project(folder, name, kind)
    for file in written:
        print(f"  {file}")
    begins = f"python -m pytest    # and begin in {name}/{BEGINS_IN[kind]}.py"
    lines = (f"cd {name}", f"polyrhythm check {name}.toml", *(line.format(name=name) for line in NEXT[kind]), begins)
    print("\nnext:  " + "\n       ".join(lines))
    return 0


def check_name(name: str) -> None:
    """Raise UserError where a package of that name cannot be imported, or would hide one that is needed."""
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise UserError(f"{name!r} is a keyword of Python; take another name, such as my_{name.strip('_').lower()}")
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,49}", name):
        raise UserError(
            f"{name!r} is no name of a Python package; expected a-z, 0-9 and _, beginning with a letter: my_robot"
        )
    if name in OURS:
        raise UserError(f"a package {name!r} would hide Polyrhythm's own; take another name, such as my_{name}")
    if name in sys.stdlib_module_names or name == "test" or hasattr(builtins, name):
        what = f"built-in {name!r}" if hasattr(builtins, name) else "module"
        raise UserError(f"a package {name!r} would hide Python's own {what}; take another name, such as my_{name}")
    if name in ("tests", "pytest", "mypy") or (find_spec(name) is not None and not Path(name).is_dir()):
        raise UserError(f"a package {name!r} would hide one that is installed; take another name, such as my_{name}")


def check_class_name(name: str, kind: str) -> None:
    """Raise UserError where the class named after the project would have a name that is taken already."""
    texts = [template.read_text(encoding="utf-8") for template in _templates(kind)]
    is_used = any(CLASS in text for text in texts)
    texts = [text.replace(CLASS, "") for text in texts]  # what takes the class's name is no name that is taken
    class_name = class_name_of(name)
    if is_used and (
        keyword.iskeyword(class_name)
        or hasattr(builtins, class_name)
        or (class_name != CLASS and any(re.search(rf"\b{class_name}\b", text) for text in texts))
    ):
        raise UserError(f"its class would be {class_name}, which is taken; take another name, such as my_{name}")


def class_name_of(name: str) -> str:
    """Of a class, after that of its package: MyRobot for my_robot."""
    return "".join(part.capitalize() for part in name.split("_"))


def _templates(kind: str) -> list[Path]:
    """The files of a project, each as the uppermost folder has it."""
    sources = [TEMPLATES / source for source in ("common", *BENEATH.get(kind, ()), kind)]
    found = {file.relative_to(source): file for source in sources for file in sorted(source.rglob("*.txt"))}
    return list(found.values())


def write_project(folder: Path, name: str, kind: str) -> list[Path]:
    """Write the files of a kind of project; those that were written, in order. Raises OSError."""
    written = []
    for template in _templates(kind):
        place = Path(*template.relative_to(TEMPLATES).parts[1:])
        text = template.read_text(encoding="utf-8").replace(NAME, name).replace(CLASS, class_name_of(name))
        text = text.replace(VERSION, __version__)
        file = folder / str(place).removesuffix(".txt").replace(NAME, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        written.append(file)
    return sorted(written)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm new",
        description="Write a small project: a package, typed nodes, a launch file, a test in virtual time, a README.",
        epilog="example: polyrhythm new my_robot --with robot",
    )
    parser.add_argument("name", help="of the folder and of the package in it")
    parser.add_argument(
        "--with", dest="kind", choices=tuple(KINDS), default=PLAIN,
        help="; ".join(f"{kind}: {what}" for kind, what in KINDS.items()) + f" (default: {PLAIN})",
    )  # fmt: skip
    return parser
