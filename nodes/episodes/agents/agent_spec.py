"""`AgentSpec`: who plays a seat or judges, from a short text; the one place where such texts are read.

"rules", "human", "script:FILE", "replay:RUN.sqlite#EPISODE", "class:MODULE:CLASS" (a `Brain` of the user's), "smollm2"
(on this machine), or a model: "MODEL",
"MODEL@URL", "MODEL@SERVER" (a [servers.SERVER] of --servers), with options behind "#": "qwen@lab#t=0.3#tokens=4000".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from nodes.models import smollm2
from nodes.models.chat_format import ModelOptions
from nodes.models.servers import Servers
from runtime.errors import UserError

RULES = ("rules", "scripted")
"""Names of the offline agent."""

ACT_TOKENS = 1000
"""Of an act, where nobody says otherwise; reasoning models want more."""

SMALL_TOKENS = 80
"""Of the model on this machine: what it says after two sentences, it has said before."""

NUMBERS: dict[str, tuple[str, float, float, Callable[[str], Any]]] = {
    "t": ("temperature", 0.0, 2.0, float),
    "top_p": ("top_p", 0.0, 1.0, float),
    "seed": ("seed", 0, 2**53, int),
    "context": ("context", 256, 100_000_000, int),
}
"""Options of how a model answers: the field, its range, and how it is read."""

SWITCHES: dict[str, dict[str, Any]] = {
    "prompt=full": {"prompt": "full"}, "prompt=small": {"prompt": "small"}, "scale=plain": {"is_fine": False},
    "scale=fine": {"is_fine": True}, "system=no": {"has_system": False}, "system=yes": {"has_system": True},
}  # fmt: skip

AgentKind = Literal["rules", "human", "script", "replay", "class", "model"]
PromptKind = Literal["full", "small"]


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """What a text names. `max_tokens` 0: as many as the kind of question wants."""

    text: str
    kind: AgentKind
    path: Path = Path()
    episode: str = ""
    model: str = ""
    address: str = ""  # URL, name of a server, "": OPENAI_BASE_URL, or OpenAI
    prompt: PromptKind = "full"
    is_fine: bool = False  # of a judge: on the scale with a sentence for each number
    has_system: bool = False
    fallback: str = ""  # who is asked where the server does not answer: MODEL[@URL or SERVER]
    max_tokens: int = 0
    options: ModelOptions = field(default_factory=ModelOptions)

    @property
    def logged(self) -> str:
        """As the log names the model: with the server's name where it has one, so that prices are known later."""
        return f"{self.model}@{self.address}" if self.address and "/" not in self.address else self.model

    @classmethod
    def parse(cls, text: str, *, temperature: float = 0.7, stream: bool = False) -> AgentSpec:
        """Raises UserError for a text that names nobody; whether a model can be asked is `check_model`'s."""
        if not text.strip() or any(mark in text for mark in "\n\t"):
            raise UserError(f"agent {text!r}: expected rules, scripted, script:FILE, replay:RUN, human or MODEL[@URL]")
        kind, mark, rest = text.partition(":")
        if text in RULES or text == "human":
            return cls(text, "human" if text == "human" else "rules")
        if mark and kind == "script":
            return cls(text, "script", path=Path(rest))
        if mark and kind == "class":
            return cls(text, "class")
        if mark and kind == "replay":
            path, _, episode = rest.partition("#")
            return cls(text, "replay", path=Path(path), episode=episode)
        named, *given = text.split("#")
        model, _, address = named.partition("@")
        model = model.removeprefix("openai:")
        if not model:
            raise UserError(f"agent {text!r} names no model; expected MODEL or MODEL@http://host:port/v1")
        spec = cls(text, "model", model=model, address=address, options=ModelOptions(temperature, stream=stream))
        if model == smollm2.NAME and not address:  # in a process of this machine; too small for JSON
            options = replace(spec.options, seed=1)
            spec = replace(spec, address=smollm2.NAME, prompt="small", max_tokens=SMALL_TOKENS, options=options)
        for option in given:
            spec = spec._with(option)
        return spec

    def _with(self, option: str) -> AgentSpec:
        name, _, value = option.partition("=")
        if name in NUMBERS:
            field, low, high, kind = NUMBERS[name]
            return replace(self, options=replace(self.options, **{field: self._number(option, value, low, high, kind)}))
        if name == "tokens":
            return replace(self, max_tokens=int(self._number(option, value, 1, 1_000_000, int)))
        if name == "effort" and value:
            return replace(self, options=replace(self.options, reasoning_effort=value))
        if name == "fallback" and value.partition("@")[0]:
            return replace(self, fallback=value)
        if (meant := SWITCHES.get(option)) is not None:
            return replace(self, **meant)
        raise UserError(
            f"agent {self.text!r}: unknown option {option[:60]!r}; known: t=0.7, tokens=1000, top_p=0.9, seed=1, "
            "effort=low, context=8192, fallback=MODEL@URL, prompt=small, system=yes; of a judge scale=fine"
        )

    def _number(self, option: str, value: str, low: float, high: float, kind: Callable[[str], Any]) -> Any:
        try:
            number = kind(value)
        except ValueError:
            number = -1
        if not low <= number <= high:
            name = "temperature" if option.startswith("t=") else option.partition("=")[0]
            raise UserError(f"agent {self.text!r}: {name} is {value!r}; expected {low:g} to {high:g}")
        return number

    def options_for(self, tokens: int = ACT_TOKENS) -> ModelOptions:
        """As the model is asked; `tokens` is how long an answer may be where the text does not say."""
        return replace(self.options, max_tokens=self.max_tokens or tokens)

    def check_model(self, servers: Servers) -> None:
        """Raise UserError where this is a model that cannot be asked there."""
        asked = (self.address, self.fallback.partition("@")[2]) if self.fallback else (self.address,)
        for address in asked if self.kind == "model" else ():
            if problem := servers.problem_of(address):
                raise UserError(f"agent {self.text!r}: {problem}; or use the offline agent: rules")


def provenance_of(text: str) -> str:
    """What the messages of such an agent say of who speaks, as KIND:NAME."""
    spec = AgentSpec.parse(text)
    is_scripted = spec.kind in ("rules", "script", "class")
    return f"script:{text.removeprefix('script:')}" if is_scripted else f"model:{text}"


def agent_of(provenance: str) -> str:
    """Who plays, as `--agents` names it, from what the envelope of a reply says."""
    kind, _, name = provenance.partition(":")
    if kind == "person":
        return "human"
    return name if kind == "model" or name in RULES else provenance
