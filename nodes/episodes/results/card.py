"""The simulation card of a run: who simulated whom, who knew what, and what the figures can and cannot say."""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodes.episodes.agents.agent_spec import RULES, AgentSpec
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import prompt_template
from nodes.episodes.dialogue.rules import Order
from nodes.episodes.evaluation.by_model import judge_question
from nodes.episodes.evaluation.dimensions import RULES_JUDGE, SEVEN, Dimension, with_steps
from nodes.episodes.scenarios.visibility import Mode
from runtime import __version__
from runtime.clock import wall_time_text

_ASYMMETRY = {
    "AGENTS": "each agent knows its own goal and secret, and of others what the relationship shows",
    "MINDREADERS": "each agent knows the goals and secrets of all",
    "SCRIPT": "one writer knows everything and writes the whole episode at once",
}


_ETHICS = (
    "Nobody is spoken to: all participants are simulated, unless people are named above.",
    "What agents say of groups of people may repeat the prejudices of models; it is no finding about people.",
    "Show nobody's simulated behaviour as that of a real person.",
)


def card_of(
    plans: Iterable[EpisodePlan],
    judges: Sequence[str],
    dimensions: Sequence[Dimension] = SEVEN,
    temperature: float | None = None,
    prompts: PackagePrompts | None = None,
) -> dict[str, Any]:
    """The card as plain data, in a fixed order; `prompts` where they are not ours."""
    kinds, everybody, seeds = Counter[str](), set[str](), set[int]()
    seen: set[tuple[Mode, Order, str]] = set()
    humans = names_only = False
    for plan in plans:  # once: those of a run's file are read one by one
        kinds[plan.kind or "other"] += 1
        everybody.update(plan.agents)
        seen.add((plan.mode, plan.rules.order, plan.scenario))
        seeds.add(plan.seed)
        humans = humans or any(truth.is_human for truth in plan.truths)
        names_only = names_only or plan.name_only
    agents, modes = sorted(everybody), sorted({mode for mode, _, _ in seen})
    caveats = []
    if any(agent in RULES for agent in agents):
        caveats.append("agents called rules or scripted follow templates: they test the machinery, not social skill")
    if any(mode != "AGENTS" for mode in modes):
        caveats.append("some episodes have no information asymmetry; their success says little about real interaction")
    return {
        "agents": agents,
        "information": {mode: _ASYMMETRY[mode] for mode in modes},
        "characters": "names only" if names_only else "full profiles",
        "modalities": ["text"],
        "humans": "people played seats" if humans else "none",
        "platform": "Polyrhythm episodes, virtual time, turn order "
        + ", ".join(sorted({order for _, order, _ in seen})),
        "domain": dict(sorted(kinds.items())),
        "asked": _asked(agents, temperature, prompts),
        "versions": {"polyrhythm": __version__, "python": platform.python_version()},
        "date": wall_time_text()[:8],
        "seeds": sorted(seeds),
        "scenarios": len({scenario for _, _, scenario in seen}),
        "episodes": sum(kinds.values()),
        "uses": "comparing agents in the same situations; finding failures worth reading",
        "not_for": "predicting what particular people would do",
        "metrics": metrics_of(judges, dimensions, prompts),
        "caveats": caveats,
        "ethics": list(_ETHICS),
    }


def metrics_of(
    judges: Sequence[str], dimensions: Sequence[Dimension] = SEVEN, prompts: PackagePrompts | None = None
) -> dict[str, Any]:
    """Who judged, and what models that judge were asked, at which temperature."""
    found: dict[str, Any] = {
        "judges": list(judges),
        "checks": "leaks, deal and price, what was learned, lengths, repetitions",
    }
    if list(judges) == [RULES_JUDGE]:
        found["caveat"] = "scores come from rules that look at words; they do not read between the lines"
    models = {judge: AgentSpec.parse(judge, temperature=0.0) for judge in judges if judge != RULES_JUDGE}
    if models:
        own = "" if tuple(dimensions) == SEVEN else f" on {', '.join(one.name for one in dimensions)}"
        scales = {spec.is_fine: with_steps(dimensions) if spec.is_fine else dimensions for spec in models.values()}
        found["temperature"] = {judge: spec.options.temperature for judge, spec in models.items()}
        found["prompts"] = _versions(
            {prompts.name: prompts.judge}
            if prompts
            else {("fine" if is_fine else "plain") + own: judge_question(scale) for is_fine, scale in scales.items()}
        )
    return found


def _asked(agents: Sequence[str], temperature: float | None, prompts: PackagePrompts | None) -> dict[str, Any]:
    """How models are asked: the temperature where an agent's text has none, and the prompt's words and version."""
    models = [spec for text in agents if (spec := AgentSpec.parse(text)).kind == "model"]
    if not models or temperature is None:
        return {"prompt": "no model played, as far as this program knows"}
    texts: dict[str, str] = (
        {prompts.name: prompts.act}
        if prompts
        else {str(kind): prompt_template(small=kind == "small") for kind in sorted({spec.prompt for spec in models})}
    )
    return {"temperature": temperature, "prompts": _versions(texts)}


def _versions(texts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    return {
        name: {"version": hashlib.sha256(text.encode()).hexdigest()[:12], "text": text} for name, text in texts.items()
    }
