"""`polyrhythm study`: read and rehearse a protocol, and write its sessions as tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from bridges.web.study.export import gather, step_words, write
from bridges.web.study.protocol import Protocol, read_protocol, rows_of
from bridges.web.study.rehearse import Rehearsal
from bridges.web.study.steps import steps_of
from runtime.command_line.arguments import new_path
from runtime.errors import UserError


def main(argv: list[str]) -> int:
    """`polyrhythm study`: 0. Raises UserError where a protocol or a session cannot be read."""
    asked = _parser().parse_args(argv)
    if asked.do == "check":
        print("\n".join(checked(read_protocol(asked.protocol), asked.participants)))
        return 0
    if asked.do == "rehearse":
        return _rehearse(asked)
    given = [read_protocol(path) for path in asked.protocol]
    tables = gather(asked.folder, given)
    out = new_path(asked.out, asked.folder / "export")
    write(tables, out, parquet=asked.parquet, excel=asked.excel)
    for name, rows in tables.rows.items():
        print(f"{len(rows):6} {name}")
    print(f"in {out}, with codebook.csv and the protocol")
    print(f'pandas: trials = pandas.read_csv("{out}/trials.csv")')
    print(f'R:      trials <- read.csv("{out}/trials.csv")')
    return 0


def _rehearse(asked: argparse.Namespace) -> int:
    protocol = read_protocol(asked.protocol)
    out = new_path(asked.out, Path("runs") / f"rehearsal-{asked.protocol.stem}")
    took_s = Rehearsal(protocol, out, asked.seed, asked.withdraw, asked.crash).play(asked.participants)
    tables = gather(out)
    for one in tables.rows["sessions"]:
        own = [trial for trial in tables.rows["trials"] if trial["participant"] == one["participant"]]
        ways = ", ".join(f"{trial['task']} under {trial['condition']}: {trial['outcome']}" for trial in own)
        print(f"{one['participant']}: {one['outcome']}; {ways}")
    print(f"a session takes {took_s / 60:.0f} min in the mean; made-up answers are in {out}")
    print(f"next: polyrhythm study export {out}")
    return 0


def checked(protocol: Protocol, participants: int) -> list[str]:
    """What a protocol leads to, in lines: what each participant goes through, and what is worth a second look."""
    count = len(protocol.condition)
    trials = len(protocol.trials_of(1))
    lines = [
        f"{protocol.path}: {protocol.title}",
        f"conditions: {', '.join(one.id for one in protocol.condition)}",
        f"tasks: {', '.join(one.id for one in protocol.task)}",
        f"{trials} trials a participant ({protocol.design.trials})",
    ]
    if protocol.design.conditions == "latin-square" and count > 1:
        lines.append(f"the order of conditions is balanced over every {rows_of(count)} participants")
    for number in range(1, participants + 1):
        order = ", ".join(f"{task.id} under {condition.id}" for task, condition in protocol.trials_of(number))
        lines.append(f"  {protocol.code_of(number)}: {order}")
    lines.append(f"what {protocol.code_of(1)} goes through:")
    lines += [f"  {place}. {step_words(step)}" for place, step in enumerate(steps_of(protocol, 1), 1)]
    branches = [one.title for one in steps_of(protocol, 1) if one.asks_for]
    if branches:
        lines.append(f"only after certain answers: {', '.join(branches)}")
    longest_s = sum(task.limit_s for task, _ in protocol.trials_of(1))
    unlimited = sorted({task.id for task in protocol.task if not task.limit_s})
    lines.append(
        f"no limit of time: {', '.join(unlimited)}"
        if unlimited
        else f"trials take {longest_s / 60:.0f} min at the most"
    )
    return lines + [f"look: {line}" for line in _doubts(protocol)]


def _doubts(protocol: Protocol) -> list[str]:
    """What can be read, and is seldom meant."""
    asked = {*protocol.questionnaires.before, *protocol.questionnaires.after_trial, *protocol.questionnaires.end}
    found = [
        f"[[questionnaire]] {one.id} is asked nowhere; name it in [questionnaires]"
        for one in protocol.questionnaire
        if one.id not in asked
    ]
    count = len(protocol.condition)
    if count > 1 and protocol.design.conditions == "fixed":
        found.append('[design] conditions = "fixed": everybody has the same order, which then is part of the effect')
    own = [task for task in protocol.task if not task.practice]
    if protocol.design.trials == "paired" and len(own) > count:
        found.append(f"{len(own)} tasks and {count} conditions: paired, a participant has {count} of them")
    persons = [one.id for one in protocol.condition if any("human_" in who for who in one.seats.values())]
    if persons and "collaborator" in protocol.wizard.voices:
        found.append(
            f"under {', '.join(persons)} a wizard may speak as the collaborator, which participants see: "
            '[wizard] voices = ["robot"] locks it'
        )
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm study",
        description=__doc__.split(":", 1)[1].strip(),
        epilog="example: polyrhythm study check my_study.toml",
    )
    commands = parser.add_subparsers(dest="do", required=True, metavar="check|rehearse|export")
    check = commands.add_parser("check", help="read a protocol: what each participant goes through, what looks odd")
    check.add_argument("protocol", type=Path, metavar="PROTOCOL.toml")
    check.add_argument("--participants", type=_few, default=4, metavar="N", help="orders shown (default: 4)")
    rehearse = commands.add_parser("rehearse", help="scripted people play the whole protocol, in virtual time")
    rehearse.add_argument("protocol", type=Path, metavar="PROTOCOL.toml")
    rehearse.add_argument("--participants", type=_few, default=6, metavar="N", help="sessions played (default: 6)")
    rehearse.add_argument("--withdraw", type=_few, action="append", default=[], metavar="N", help="stops in a trial")
    rehearse.add_argument(
        "--crash", type=_few, action="append", default=[], metavar="N", help="the console dies in theirs"
    )
    rehearse.add_argument("--seed", type=int, default=0, help="of what they say and answer (default: 0)")
    rehearse.add_argument("--out", type=Path, metavar="FOLDER", help="default: runs/rehearsal-PROTOCOL")
    export = commands.add_parser("export", help="sessions, trials, answers, events, utterances as CSV, with codebook")
    export.add_argument("folder", type=Path, metavar="FOLDER", help="where sessions are kept, as runs/study")
    export.add_argument("--out", type=Path, metavar="FOLDER", help="default: FOLDER/export")
    export.add_argument("--parquet", action="store_true", help="each table as Parquet, too")
    export.add_argument(
        "--excel", action="store_true", help="CSV that Excel opens by a double click: UTF-8 with its mark"
    )
    export.add_argument(
        "--protocol", type=Path, action="append", default=[], metavar="FILE", help="of sessions that kept none"
    )
    return parser


def _few(text: str) -> int:
    if not text.isdecimal() or len(text) > 4 or not int(text):
        raise UserError(f"{text!r}: expected the number of a participant, or how many, from 1 to 9999")
    return int(text)
