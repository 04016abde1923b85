"""The simulation card of a run: who simulated whom, who knew what, and what the figures can and cannot say."""

from __future__ import annotations

import hashlib
import platform
from collections import Counter
from collections.abc import Sequence
from typing import Any

from nodes.episodes.agents.agent_spec import RULES, AgentSpec
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import prompt_template
from runtime import __version__
from runtime.clock import wall_time_text

_ASYMMETRY = {
    "AGENTS": "each agent knows its own goal and secret, and of others what the relationship shows",
    "MINDREADERS": "each agent knows the goals and secrets of all",
    "SCRIPT": "one writer knows everything and writes the whole episode at once",
    "SCRIPT-TURNS": "one writer knows everything and writes turn by turn",
}


_ETHICS = (
    "Nobody is spoken to: all participants are simulated, unless people are named above.",
    "What agents say of groups of people may repeat the prejudices of models; it is no finding about people.",
    "Show nobody's simulated behaviour as that of a real person.",
)


def card_of(
    plans: Sequence[EpisodePlan],
    judges: Sequence[str],
    *,
    temperature: float | None = None,
    prompts: PackagePrompts | None = None,
) -> dict[str, Any]:
    """The card as plain data, in a fixed order; `prompts` where they are not ours."""
    agents = sorted({agent for plan in plans for agent in plan.agents})
    modes = sorted({plan.mode for plan in plans})
    kinds = Counter(plan.kind or "other" for plan in plans)
    humans = any(truth.is_human for plan in plans for truth in plan.truths)
    caveats = []
    if any(agent in RULES for agent in agents):
        caveats.append("agents called rules or scripted follow templates: they test the machinery, not social skill")
    if list(judges) == ["rules"]:
        caveats.append("scores come from rules that look at words; they do not read between the lines")
    if any(mode != "AGENTS" for mode in modes):
        caveats.append("some episodes have no information asymmetry; their success says little about real interaction")
    return {
        "agents": agents,
        "information": {mode: _ASYMMETRY[mode] for mode in modes},
        "characters": "names only" if any(plan.name_only for plan in plans) else "full profiles",
        "modalities": ["text"],
        "humans": "people played seats" if humans else "none",
        "platform": "Polyrhythm episodes, virtual time, turn order "
        + ", ".join(sorted({p.rules.order for p in plans})),
        "domain": dict(sorted(kinds.items())),
        "asked": _asked(agents, temperature, prompts),
        "versions": {"polyrhythm": __version__, "python": platform.python_version()},
        "date": wall_time_text()[:8],
        "seeds": sorted({plan.seed for plan in plans}),
        "scenarios": len({plan.scenario for plan in plans}),
        "episodes": len(plans),
        "uses": "comparing agents in the same situations; finding failures worth reading",
        "not_for": "predicting what particular people would do",
        "metrics": {"judges": list(judges), "checks": "leaks, deal and price, what was learned, lengths, repetitions"},
        "caveats": caveats,
        "ethics": list(_ETHICS),
    }


def _asked(agents: Sequence[str], temperature: float | None, prompts: PackagePrompts | None) -> dict[str, Any]:
    """How models are asked: the temperature where an agent's text has none, and the prompt's words and version."""
    models = [spec for text in agents if (spec := AgentSpec.parse(text)).kind == "model"]
    if not models or temperature is None:
        return {"prompt": "no model was asked by this program"}
    texts = (
        {prompts.name: prompts.act}
        if prompts
        else {kind: prompt_template(small=kind == "small") for kind in sorted({spec.prompt for spec in models})}
    )
    return {
        "temperature": temperature,
        "prompts": {
            name: {"version": hashlib.sha256(text.encode()).hexdigest()[:12], "text": text}
            for name, text in texts.items()
        },
    }
