"""`polyrhythm models`: try a language model's server before a run.

`try` asks one act, one plan, one judgement, about one image, and one long prompt. It prints what the server takes and
what it does not, how long and how many tokens each took, and the lines for a launch file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from nodes.episodes.agents.acts import read_act
from nodes.episodes.dialogue.prompt import ACT_SCHEMA
from nodes.episodes.evaluation.by_model import judge_question, judge_schema, read_scores
from nodes.episodes.evaluation.dimensions import SEVEN
from nodes.models.address import key_problem, url_problem
from nodes.models.answers import MOST_TOKENS, ModelError, has_openai_key
from nodes.models.budget import Budget
from nodes.models.chat_format import ModelOptions, Question
from nodes.models.chat_request import data_url
from nodes.models.http_client import HttpClient
from nodes.models.json_reading import UnreadableError
from nodes.models.model import Model, Patience, Server
from nodes.models.refusals import ContextFullError, RefusedError
from nodes.msgs import Image, Scene
from nodes.planner.model_prompt import answer_schema, parse, system_prompt
from nodes.planner.orders import Surroundings
from nodes.policy.skill_catalogue import SPECS
from nodes.vlm.eyes.model_prompt import answer_schema as seen_schema
from nodes.vlm.eyes.model_prompt import parse as parse_seen
from nodes.vlm.eyes.model_prompt import system_prompt as seen_prompt
from runtime.command_line.arguments import answered, seconds
from runtime.errors import UserError

LONG_CHARACTERS = 24_000
"""About 6,000 tokens: a long talk's history, or a day's."""
WIDTH_PX, HEIGHT_PX = 320, 240
NEEDED = ("act", "plan", "judgement")
WHOLE, MOST_FAILURES = 3, 2
"""A trial takes as long as 3 answers may, and asks no third question where none was answered."""
DEADLINE_S = 5.0
"""A planner waits so long by itself."""
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
    try_it.add_argument("--max-tokens", type=int, default=MOST_TOKENS, metavar="N", help="of an answer (default: 2000)")
    try_it.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help="of an answer (60), a third of all")
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
    _toml(extra)
    options = ModelOptions(0.0, max_tokens=asked.max_tokens, extra_body=extra)
    tell = (lambda what, tried: None) if asked.json else _progress
    tried = asyncio.run(try_model(name, Server(url, key, asked.key), options, asked.timeout, tell))
    is_good = all(not one.problem for one in tried if one.what in NEEDED)
    lines = launch_lines(name, url, options, tried)
    if asked.json:
        print(json.dumps({"tried": [asdict(one) for one in tried], "launch": lines, "ok": is_good}, indent=1))
        return 0 if is_good else 1
    left_out = dict.fromkeys(part for one in tried for part in one.left_out)
    print("".join(f"asked without {part}, which the server refuses\n" for part in left_out), end="")
    print("\nfor a launch file:" if lines else "\nno planner can be put on it", *lines, sep="\n")
    return 0 if is_good else 1


def _progress(what: str, tried: Tried | None) -> None:
    """What is asked stands there while it is, since that may take a minute."""
    if tried is None:
        print(f"{what:12} ", end="", flush=True)
    else:
        cost = f"{tried.took_s:.2f} s, {tried.prompt_tokens} + {tried.completion_tokens} tokens"
        print(f"NO: {tried.problem}" if tried.problem else f"ok, {cost}", flush=True)


async def try_model(
    name: str, server: Server, options: ModelOptions, timeout_s: float, tell: Callable[[str, Tried | None], None]
) -> list[Tried]:
    """How each kind of question went, one after the other; `tell` hears of each when it is asked and when it is over.

    Where the server answers none, the rest is not asked: at once where waiting would not help.
    """
    http = HttpClient()
    model = Model(name, [server], http, options=options, patience=Patience(timeout_s, timeout_s, 2), budget=Budget())
    clock = asyncio.get_running_loop()
    ends_s = clock.time() + WHOLE * timeout_s
    tried: list[Tried] = []
    failures, has_answered, is_over = 0, False, False
    try:
        for what, question, read in _questions():
            tell(what, None)
            began_s, one = clock.time(), Tried(what, "not asked, since the server answers nothing")
            try:
                if not is_over:
                    async with asyncio.timeout_at(ends_s):
                        one = await _asked(model, what, question, read)
                        has_answered = True
            except TimeoutError:
                one = Tried(what, f"no answer within {WHOLE * timeout_s:g} s, which is all that a trial takes")
            except ModelError as problem:
                one = Tried(what, str(problem))
                if not (has_answered or isinstance(problem, RefusedError | ContextFullError)):
                    failures += 1
                    may_pass = problem.may_retry or clock.time() - began_s >= timeout_s  # a model is loaded at first
                    is_over = failures >= MOST_FAILURES or not may_pass
            tell(what, one)
            tried.append(one)
        return tried
    finally:
        await http.close()


async def _asked(model: Model, what: str, question: Question, read: Callable[[str], object]) -> Tried:
    answer = await model.ask(question)
    cost = (answer.took_s or 0.0, answer.prompt_tokens, answer.completion_tokens, answer.left_out)
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
        ("act", Question("", act, ACT_SCHEMA), _act),
        ("plan", Question(system, plan, schema), lambda text: parse(text, AROUND)),
        ("judgement", Question("", judged, judge_schema(NAMES, SEVEN)), _scores),
        (
            "image",
            Question(seen_prompt("pixel"), f"The image is {WIDTH_PX} x {HEIGHT_PX} pixels.", seen_schema(), (url,)),
            lambda text: parse_seen(text, "pixel", WIDTH_PX, HEIGHT_PX),
        ),
        ("long prompt", Question(system, f"{history}\n{plan}", schema), lambda text: parse(text, AROUND)),
    ]


def _act(text: str) -> object:
    if (read := read_act(text)).is_cut:
        raise UnreadableError("it was cut off before its end")
    return read


def _scores(text: str) -> object:
    read = read_scores(text, NAMES, SEVEN)
    if read.problems:
        raise UnreadableError(f"{len(read.problems)} of {2 * len(SEVEN)} scores cannot be used: {read.why}")
    return read


def launch_lines(name: str, url: str, options: ModelOptions, tried: list[Tried]) -> list[str]:
    """A launch file's lines for a planner on this model, asked as it was tried; none where it makes no plan."""
    went = {one.what: one for one in tried}
    if went["plan"].problem:
        return []
    params = [f"model = {json.dumps(name)}", f"base_url = {json.dumps(url)}"]
    params += ["sees = false"] if went["image"].problem else []
    if (slow_s := math.ceil(2 * went["plan"].took_s)) > DEADLINE_S:
        params += [f"deadline_s = {slow_s:.1f}"]
    params += [f"max_tokens = {options.max_tokens}"] if options.max_tokens != MOST_TOKENS else []
    params += [f"extra_body = {_toml(options.extra_body)}"] if options.extra_body else []
    return ["[nodes.planner]", 'use = "nodes.planner.openai_api:OpenAIPlanner"', f"params = {{ {', '.join(params)} }}"]


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if value is None or value in (math.inf, -math.inf) or value != value:
        raise UserError(f"--extra-body holds {json.dumps(value)}; a launch file cannot")
    return json.dumps(value)
