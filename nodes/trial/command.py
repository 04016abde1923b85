"""`polyrhythm models`: try a language model's server before a run.

`try` asks one act, one plan, one judgement, about one image, and one long prompt. It prints what the server takes and
what it does not, how long and how many tokens each took, and the lines for a launch file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from nodes.episodes.agents.acts import read_act
from nodes.episodes.dialogue.prompt import ACT_SCHEMA
from nodes.episodes.evaluation.by_model import judge_question, judge_schema, read_scores
from nodes.episodes.evaluation.dimensions import SEVEN
from nodes.models.address import key_problem, url_problem
from nodes.models.answers import ModelError, has_openai_key
from nodes.models.budget import Budget
from nodes.models.chat_format import ModelOptions, Question
from nodes.models.chat_request import data_url
from nodes.models.http_client import HttpClient
from nodes.models.json_reading import UnreadableError
from nodes.models.model import Model, Patience, Server
from nodes.planner.model_prompt import answer_schema, parse, system_prompt
from nodes.planner.rules import Surroundings
from nodes.policy.skill_catalogue import SPECS
from nodes.vlm.model_prompt import answer_schema as seen_schema
from nodes.vlm.model_prompt import parse as parse_seen
from nodes.vlm.model_prompt import system_prompt as seen_prompt
from runtime.command_line.arguments import answered, seconds
from runtime.errors import UserError
from runtime.msgs import Image, Scene

LONG_CHARACTERS = 24_000
"""About 6,000 tokens: a long talk's history, or a day's."""
WIDTH_PX, HEIGHT_PX = 320, 240
NEEDED = ("act", "plan", "judgement")
AROUND = Surroundings(Scene(places=("bin", "table")), tuple(SPECS.values()))
NAMES = ("Ann", "Ben")
TALK = 'Ann sells a lamp. Ben wants it.\nTurn 1: Ann said: "40, please."\nTurn 2: Ben said: "30, and I take it."'


@dataclass(frozen=True, slots=True)
class Tried:
    """How one question went; `problem` is "" where the answer can be used."""

    what: str
    problem: str
    took_s: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    left_out: tuple[str, ...] = ()


def main(argv: list[str]) -> int:
    """0 where acts, plans and judgements can be used, 1 where not, 2 where it was asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm models",
        description="Language models on servers that speak OpenAI's chat completions.",
        epilog="example: polyrhythm models try qwen3-8b@http://127.0.0.1:8000/v1",
    )
    try_it = parser.add_subparsers(dest="do", required=True).add_parser(
        "try",
        help="ask a model one of each question that it will be asked",
        description="Ask one act, one plan, one judgement, about one image, and one long prompt: 5 calls at least.",
        epilog="example: polyrhythm models try qwen3-8b@http://127.0.0.1:8000/v1",
    )
    try_it.add_argument("model", metavar="MODEL@URL")
    try_it.add_argument("--key", default="OPENAI_API_KEY", metavar="NAME", help="the environment variable of its key")
    try_it.add_argument("--extra-body", default="{}", metavar="JSON", help="further fields of each request")
    try_it.add_argument("--max-tokens", type=int, default=2000, metavar="N", help="of an answer (default: 2000)")
    try_it.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="of an answer (default: 60)")
    try_it.add_argument("--json", action="store_true", help="JSON and nothing else on standard output")
    asked = try_it.parse_args(argv[1:]) if argv[:1] == ["try"] else parser.parse_args(argv)
    return answered("polyrhythm models", lambda: _try(asked))


def _try(asked: argparse.Namespace) -> int:
    name, _, url = asked.model.partition("@")
    if not name or (problem := url_problem(url)):
        raise UserError(f"{asked.model!r}: {problem if name else 'names no model; expected MODEL@URL'}")
    is_default = asked.key == "OPENAI_API_KEY"
    key = os.environ.get(asked.key, "") if not is_default or has_openai_key(url) else ""
    if problem := key_problem(key, asked.key):
        raise UserError(problem)
    try:
        extra = json.loads(asked.extra_body)
    except ValueError as problem_:
        raise UserError(f"--extra-body: expected a JSON object: {problem_}") from problem_
    if not isinstance(extra, dict) or asked.max_tokens < 1:
        raise UserError("--extra-body is a JSON object, and --max-tokens at least 1")
    options = ModelOptions(0.0, max_tokens=asked.max_tokens, extra_body=extra)
    tried = asyncio.run(try_model(name, Server(url, key, asked.key), options, asked.timeout))
    is_good = all(not one.problem for one in tried if one.what in NEEDED)
    lines = launch_lines(name, url, extra, tried)
    if asked.json:
        print(json.dumps({"tried": [asdict(one) for one in tried], "launch": lines, "ok": is_good}, indent=1))
        return 0 if is_good else 1
    for one in tried:
        cost = f"{one.took_s:.2f} s, {one.prompt_tokens} + {one.completion_tokens} tokens"
        print(f"{one.what:12} {f'NO: {one.problem}' if one.problem else f'ok, {cost}'}")
    left_out = dict.fromkeys(part for one in tried for part in one.left_out)
    print("".join(f"asked without {part}, which the server refuses\n" for part in left_out), end="")
    print("\nfor a launch file:", *lines, sep="\n")
    return 0 if is_good else 1


async def try_model(name: str, server: Server, options: ModelOptions, timeout_s: float) -> list[Tried]:
    """How each kind of question went, one after the other."""
    http = HttpClient()
    model = Model(name, [server], http, options=options, patience=Patience(timeout_s, timeout_s, 2), budget=Budget())
    try:
        return [await _asked(model, what, question, read) for what, question, read in _questions()]
    finally:
        await http.close()


async def _asked(model: Model, what: str, question: Question, read: Callable[[str], object]) -> Tried:
    try:
        answer = await model.ask(question)
    except ModelError as problem:
        return Tried(what, str(problem))
    cost = (answer.took_s, answer.prompt_tokens, answer.completion_tokens, answer.left_out)
    if answer.ending == "declined":
        return Tried(what, f"it declines to answer: {answer.text[:100]}", *cost)
    try:
        read(answer.text)
    except (ModelError, UnreadableError) as problem:
        cut = "cut off at max_tokens: " if answer.ending == "cut" else ""
        return Tried(what, f"{cut}{problem}", *cost)
    return Tried(what, "", *cost)


def _questions() -> list[tuple[str, Question, Callable[[str], object]]]:
    import numpy as np

    system, schema = system_prompt(AROUND), answer_schema(AROUND)
    picture = np.full((HEIGHT_PX, WIDTH_PX, 3), 200, np.uint8)
    picture[90:150, 130:190] = (200, 30, 30)
    url = data_url(Image(camera="head", rgb=picture, focal_px=300.0, captured_ns=0))
    plan = '"ann" said "Put the red cup into the bin, please."'
    act = (
        f'You play Ann. {TALK}\n\nAnswer with one JSON object: {{"action_type": "speak", "argument": "...", "to": []}}'
    )
    judged = f"Judge an episode between {', '.join(NAMES)}.\n{TALK}\n\n{judge_question(SEVEN)}"
    history = "\n".join(
        [f'"ann" said "This is remark number {n} of a long day."' for n in range(LONG_CHARACTERS // 48)]
    )
    return [
        ("act", Question("", act, ACT_SCHEMA), read_act),
        ("plan", Question(system, plan, schema), lambda text: parse(text, AROUND)),
        ("judgement", Question("", judged, judge_schema(NAMES, SEVEN)), _scores),
        (
            "image",
            Question(seen_prompt("pixel"), f"The image is {WIDTH_PX} x {HEIGHT_PX} pixels.", seen_schema(), (url,)),
            lambda text: parse_seen(text, "pixel", WIDTH_PX, HEIGHT_PX),
        ),
        ("long prompt", Question(system, f"{history}\n{plan}", schema), lambda text: parse(text, AROUND)),
    ]


def _scores(text: str) -> object:
    read = read_scores(text, NAMES, SEVEN)
    if read.problems:
        raise UnreadableError(f"{len(read.problems)} of {2 * len(SEVEN)} scores cannot be used: {read.why}")
    return read


def launch_lines(name: str, url: str, extra: dict[str, object], tried: list[Tried]) -> list[str]:
    """A launch file's lines for a planner on this model, as far as it can be one."""
    sees = any(one.what == "image" and not one.problem for one in tried)
    params = [f"model = {json.dumps(name)}", f"base_url = {json.dumps(url)}"]
    params += [] if sees else ["sees = false"]
    params += [f"extra_body = {_toml(extra)}"] if extra else []
    return ["[nodes.planner]", 'use = "nodes.planner.openai_api:OpenAIPlanner"', f"params = {{ {', '.join(params)} }}"]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)
