"""`polyrhythm lerobot`: LeRobot's environment, and what a guard must know of its robots."""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bridges.lerobot.device import ENVIRONMENT, WHOLE, JointHello, LeRobotDevice, environment_python, known_types
from bridges.lerobot.facts import GRIPPER, JointFacts, LeRobotFacts, Setting, read_facts
from nodes.robot.robot_from_launch import LEROBOT, limits_problem
from runtime.command_line.arguments import check_new
from runtime.errors import UserError, choices
from runtime.operating_system.processes import foreign_environment
from runtime.operating_system.whole_file import write_whole

LEROBOT_WANTS = "lerobot>=0.6,<0.7"
TURN = 2 * math.pi
DEGREE = math.pi / 180
HALF_HUNDRED = 100.0
"""LeRobot's -100 to 100, or 0 to 100 for a gripper, from one end of the range to the other."""


def main(argv: list[str]) -> int:
    """Raises UserError where something lacks."""
    asked = _parser().parse_args(argv)
    return install(asked) if asked.verb == "install" else write_facts(asked)


def install(asked: argparse.Namespace) -> int:
    """Make the environment, or add plug-ins to it. Raises UserError; what is half made is made anew next time."""
    folder, python = ENVIRONMENT.expanduser(), environment_python()
    mark = folder / WHOLE
    wanted = list(asked.plugins)
    if not (python.exists() and mark.is_file()):
        if shutil.which(asked.python) is None:
            raise UserError(
                f"--python {asked.python}: there is no such program; LeRobot 0.6 wants Python 3.12 or newer"
            )
        print(f"{folder}: made for {asked.lerobot} (PyTorch is about 1 GB)", flush=True)
        _run([asked.python, "-m", "venv", "--clear", str(folder)], "the environment cannot be made")
        wanted = [asked.lerobot, *wanted]
    elif not wanted:
        print(f"{folder} is there; name plug-ins to add: polyrhythm lerobot install lerobot_robot_...")
    if wanted:
        pip = [str(python), "-I", "-m", "pip", "install", "--disable-pip-version-check", *wanted]
        _run(pip, f"pip does not install {', '.join(wanted)}")
    mark.write_bytes(msgspec.json.encode({"lerobot": asked.lerobot}))
    for kind, types in known_types().items():
        print(f"{kind}s: {choices(types) if types else 'none'}")
    return 0


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, env=foreign_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
        errors = [line for line in said if line.startswith("ERROR")] or said[-1:] or ["it said nothing"]
        hint = "; say --python python3.12" if any("requires a different Python" in line for line in said) else ""
        raise UserError(f"{what}: {errors[0][:300]}{hint}")


@dataclass
class Answers:
    """What a person said of a robot: by options, or where somebody sits there, when asked."""

    options: Mapping[str, Mapping[str, str]]
    asks: bool
    lacking: list[str] = field(default_factory=list)

    def number(self, option: str, name: str, what: str) -> float:
        """A positive number of a joint; NaN where nobody said it, which is noted."""
        given = self.options[option]
        text = given.get(name, given.get("", ""))
        if not text and self.asks:
            text = input(f"{name}: {what}? ").strip()
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if text and not 0.0 < found < math.inf:
            raise UserError(f"--{option} of {name} is {text!r}; expected a number above 0")
        if not text:
            self.lacking.append(f"--{option} {name}=NUMBER ({what})")
        return found

    def word(self, option: str, name: str, what: str, known: tuple[str, ...]) -> str:
        """One of these words; "" where nobody said it, which is noted."""
        given = self.options[option]
        text = given.get(name, given.get("", ""))
        if not text and self.asks:
            text = input(f"{name}: {what} ({', '.join(known)})? ").strip()
        if text and text not in known:
            raise UserError(f"--{option} of {name} is {text!r}; expected {choices(known)}")
        if not text:
            self.lacking.append(f"--{option} {name}={'|'.join(known)} ({what})")
        return text


def write_facts(asked: argparse.Namespace) -> int:
    """Ask LeRobot, then the person, and write the file. Raises UserError, with all options that lack."""
    out: Path = asked.out or Path(f"{asked.robot}{LEROBOT}")
    if not out.name.endswith(LEROBOT):
        raise UserError(f"--out {out}: expected a name that ends in {LEROBOT}")
    check_new(out)
    settings = dict(asked.set)
    hello = LeRobotDevice("robot", asked.robot, settings, asked.python).described()
    if not hello.joints:
        raise UserError(f"{asked.robot} has no joints that are numbers: no arm that a guard could limit")
    if driven := [key for key in hello.actions if key.endswith(".vel")]:
        raise UserError(
            f"{asked.robot} is driven by velocities, too ({', '.join(driven)}); only arms that stand are taken"
        )
    options = {name: dict(getattr(asked, name)) for name in ("speed", "acceleration", "unit", "range")}
    unknown = {name for one in options.values() for name in one if name} - {
        _name(key, asked.gripper) for key in hello.joints
    }
    if unknown:
        known = choices(_name(key, asked.gripper) for key in hello.joints)
        raise UserError(f"{asked.robot} has no joint {', '.join(sorted(unknown))}; it has {known}")
    answers = Answers(options | {"connecting-moves": {"": asked.connecting_moves}, "gripper-m": {"": asked.gripper_m}},
                      asks=sys.stdin.isatty())  # fmt: skip
    if asked.gripper and asked.gripper not in hello.joints:
        raise UserError(f"--gripper {asked.gripper}: it has {choices(hello.joints)}")
    joints = {_name(key, asked.gripper): _joint(key, one, asked, answers) for key, one in hello.joints.items()}
    unseen = "" if hello.watched else "; it has no bus of LeRobot's by which that is seen, so only you can tell"
    asks = f"does it move when LeRobot connects{unseen}"
    moves = answers.word("connecting-moves", asked.robot, asks, ("yes", "no"))
    if answers.lacking:
        raise UserError(f"LeRobot does not tell all of {asked.robot}; say\n  " + "\n  ".join(answers.lacking))
    facts = LeRobotFacts(
        type=asked.robot,
        connecting_moves=moves == "yes",
        joints={k: v for k, v in joints.items() if v},
        settings=settings,
    )
    if problem := limits_problem(facts.limits):
        raise UserError(f"{asked.robot}: {problem}")
    write_whole(out, as_toml(facts).encode())
    read_facts(str(out))
    print(f"{out}: {len(facts.joints)} joints. Look at its ranges before the arm moves")
    print(f'[run] robot = "{out}"; the driver: robot = "bridges.lerobot.robot:LeRobotRobot", '
          f'robot_params = {{ facts = "{out}" }}')  # fmt: skip
    return 0


def _name(key: str, gripper: str) -> str:
    return GRIPPER if key == gripper else "".join(c if c.isalnum() else "_" for c in key.removesuffix(".pos").lower())


def _joint(key: str, told: JointHello, asked: argparse.Namespace, answers: Answers) -> JointFacts | None:
    """What is known of one joint; None where something lacks, which is noted."""
    name = _name(key, asked.gripper)
    if name == GRIPPER:
        opening = answers.number("gripper-m", name, "how far it opens, m")
        ends = _range(name, answers, (0.0, HALF_HUNDRED) if told.mode in ("", "range_0_100") else None)
        scale, unit = (opening / (ends[1] - ends[0]) if ends else math.nan), "m"
        offset = -scale * ends[0] if ends and ends[0] else 0.0
    else:
        ends, scale = _scale(name, told, answers)
        unit, offset = ("m" if answers.options["unit"].get(name) == "m" else "rad"), 0.0
    per = "m" if unit == "m" else "rad"
    speed = answers.number("speed", name, f"its greatest speed, {per} per s")
    acceleration = answers.number("acceleration", name, f"its greatest acceleration, {per} per s2")
    if ends is None or not all(map(math.isfinite, (scale, speed, acceleration))):
        return None
    low, high = sorted(offset + scale * end for end in ends)
    return JointFacts(key=key, unit="m" if unit == "m" else "rad", scale=scale, offset=offset, lowest=low, highest=high,
                      speed=speed, acceleration=acceleration)  # fmt: skip


def _scale(name: str, told: JointHello, answers: Answers) -> tuple[tuple[float, float] | None, float]:
    """The ends of a joint in LeRobot's units, and rad or m of one of these."""
    span = abs(told.range[1] - told.range[0]) / told.turn * TURN if told.range and told.turn else math.nan
    if told.mode == "degrees":
        half = span / 2 / DEGREE
        return (((-half, half) if math.isfinite(half) else _range(name, answers, None)), DEGREE)
    if told.mode == "range_m100_100" and math.isfinite(span):
        return (-HALF_HUNDRED, HALF_HUNDRED), span / (2 * HALF_HUNDRED)
    unit = answers.word("unit", name, "what one of LeRobot's numbers is", ("rad", "deg", "m", "percent"))
    ends = _range(name, answers, (-HALF_HUNDRED, HALF_HUNDRED) if unit == "percent" else None)
    if unit == "percent":
        answers.lacking.append(f"a calibration of {name}: in percent its range is not known; run lerobot-calibrate")
    return ends, {"rad": 1.0, "deg": DEGREE, "m": 1.0}.get(unit, math.nan)


def _range(name: str, answers: Answers, otherwise: tuple[float, float] | None) -> tuple[float, float] | None:
    """The ends of a joint in LeRobot's own units, as somebody says, or as is usual."""
    text = answers.options["range"].get(name, "")
    if not text and otherwise is not None:
        return otherwise
    if not text and answers.asks:
        text = input(f"{name}: its ends in LeRobot's units, like -90..90? ").strip()
    if not text:
        answers.lacking.append(f"--range {name}=LOWEST..HIGHEST (in LeRobot's units)")
        return None
    low, _, high = text.partition("..")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not -1e6 < ends[0] < ends[1] < 1e6:
        raise UserError(f"--range of {name} is {text!r}; expected two numbers, like -90..90")
    return ends


def as_toml(facts: LeRobotFacts) -> str:
    """The file, as `read_facts` reads it."""
    lines = [
        "# What LeRobot does not tell of this robot and its guard needs: docs/lerobot-arms.md. Look at each number.",
        f"type = {json.dumps(facts.type)}",
        f"connecting_moves = {json.dumps(facts.connecting_moves)}",
        "",
        "[settings] # of LeRobot's configuration class",
        *(f"{name} = {json.dumps(value)}" for name, value in facts.settings.items()),
    ]
    for name, joint in facts.joints.items():
        lines += ["", f"[joints.{name}]"]
        lines += [f"{key} = {_plain(getattr(joint, key))}" for key in JointFacts.__struct_fields__]
    return "\n".join(lines) + "\n"


def _plain(value: str | float) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(round(float(value), 6))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm lerobot",
        description="LeRobot's arms, leaders and cameras: make the environment in which LeRobot runs, and write what a "
        "guard needs to know of one of its robots.",
        epilog="example: polyrhythm lerobot install --python python3.12 lerobot_robot_dummy",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    installing = verbs.add_parser(
        "install", help=f"make LeRobot's environment in {ENVIRONMENT}, once, and add plug-ins to it"
    )
    installing.add_argument("plugins", nargs="*", metavar="PLUGIN", help="a package of LeRobot's plug-ins, as for pip")
    installing.add_argument("--python", default="python3.12", help="of the environment; default: %(default)s")
    installing.add_argument(
        "--lerobot", default=LEROBOT_WANTS, metavar="PACKAGE", help="as for pip; default: %(default)s"
    )
    facts = verbs.add_parser("facts", help="write what LeRobot does not tell of a robot; it is not connected")
    facts.add_argument("robot", help="LeRobot's type of the robot, like so101_follower")
    facts.add_argument(
        "--set", action="append", default=[], type=_setting, metavar="NAME=VALUE", help="of its settings"
    )
    facts.add_argument("--out", type=Path, metavar="FILE", help=f"default: the robot's type with {LEROBOT}")
    facts.add_argument("--python", default="", metavar="PATH", help="LeRobot's, where it is not that of install")
    facts.add_argument(
        "--gripper", default="", metavar="KEY", help="which of its keys is the gripper, like gripper.pos"
    )
    facts.add_argument("--gripper-m", default="", metavar="M", help="how far it opens")
    facts.add_argument(
        "--connecting-moves", default="", metavar="yes|no", help="whether it moves when LeRobot connects"
    )
    for name, what in (
        ("speed", "its greatest speed, rad or m per s; without JOINT of each"),
        ("acceleration", "its greatest acceleration, per s2; without JOINT of each"),
        ("unit", "what one of LeRobot's numbers is: rad, deg, m, percent"),
        ("range", "its ends in LeRobot's units, like -90..90"),
    ):
        metavar = "JOINT=VALUE" if name == "range" else "[JOINT=]VALUE"
        facts.add_argument(f"--{name}", action="append", default=[], type=_pair, metavar=metavar, help=what)
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.rpartition("=")
    return (name, value) if equals else ("", text)


def _setting(text: str) -> tuple[str, Setting]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is no setting; expected one like port=/dev/ttyACM0")
    try:
        found = json.loads(value)
    except ValueError:
        found = value
    return name, found if isinstance(found, int | float | str | bool) else value
