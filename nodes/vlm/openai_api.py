"""`OpenAIVLM`: eyes from a vision-language model on a local server that speaks the chat-completions API.

vLLM, ollama and llama.cpp do; VLM_BASE_URL and VLM_MODEL, or the parameters, say where, and VLM_API_KEY is optional.
"""

from __future__ import annotations

from typing import Literal

from nodes.models.answers import ExtraBody, settings_from
from nodes.models.budget import budget_of
from nodes.models.chat_request import ChatRequest
from nodes.vlm.eyes.model_prompt import Coordinates
from nodes.vlm.pointing_vlm import PointingVLM

DEFAULT_URL = "http://127.0.0.1:8000/v1"


class OpenAIVLM(PointingVLM):
    """A model behind HTTP; an interrupt closes the connection.

    `context` is how many tokens the model reads, `extra_body` further fields of each request, `fallback` who is asked
    where the server does not answer: MODEL@URL. `prompt` is a TOML file whose texts and sizes stand in place of those
    of `nodes/vlm/eyes/model_prompt.toml`; `places` are what things can be brought to, before any is seen. Where the
    model chooses no skill, rules carry out what the subtask says; with `rules=False` nothing does.
    """

    provenance = "model:openai-api"

    def __init__(
        self,
        model: str = "",
        base_url: str = "",
        stream: bool = False,
        deadline_s: float = 5.0,
        max_calls: int = 10_000,
        max_tokens: int = 2000,
        latency_s: float = 0.5,
        coordinates: Coordinates = "pixel",
        speaker: str = "robot",
        limits: str = "",
        context: int = 0,
        extra_body: ExtraBody | None = None,
        fallback: str = "",
        prompt: str = "",
        places: tuple[str, ...] = (),
        rules: bool = True,
    ) -> None:
        self.settings = settings_from(
            "VLM",
            model=model,
            base_url=base_url,
            default_url=DEFAULT_URL,
            default_model="",
            deadline_s=deadline_s,
            max_calls=max_calls,
            max_tokens=max_tokens,
            stream=stream,
            context=context,
            extra_body=extra_body,
            fallback=fallback,
        )
        self.chat = ChatRequest(self.settings, latency_s=latency_s)
        super().__init__(self.chat, coordinates, speaker, limits, prompt=prompt, places=places, rules=rules)

    def problems(self) -> list[str]:
        """What its parameters and this environment lack, in sentences."""
        return self.settings.problems()

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return how the model's server answers, where it is asked."""
        return self.chat.findings(is_asked=is_timed)

    def on_start(self) -> None:
        self.of_model(self.settings.model)
        self.chat.start(self.clock, self.random.random, budget_of(self.name, self.run_info, self.settings.max_calls))
