"""`OpenAIPlanner`: the planner on a model behind OpenAI's chat-completions API, in the cloud or on a server at home.

It needs OPENAI_API_KEY, and takes OPENAI_BASE_URL and OPENAI_MODEL. The model is asked when something changed since its
last answer, at most every two seconds and at once after an interrupt, which also cancels the request in flight. What
that may cost in a run is [budgets.models.NODE]; once it is spent no request leaves, and the seat's ladder takes over.
"""

from __future__ import annotations

from typing import Literal

from nodes.interrupts.objecting_words import may_object
from nodes.models.answers import ExtraBody, ModelError, settings_from
from nodes.models.budget import budget_of
from nodes.models.chat_request import ChatRequest
from nodes.msgs import OutOfBudget, Saying, SceneDescription, Subtask, Utterance
from nodes.planner.model_planner import ASKED_AGAIN, ModelPlanner
from nodes.planner.model_prompt import (
    PlannerAnswer,
    answer_schema,
    news,
    parse,
    question_text,
    subtask_of,
    system_prompt,
    unearned,
)
from nodes.planner.scene_text import report_text
from nodes.planner.talk.questions import ANSWER_WITHIN_S
from runtime import Fence, ParameterError, Spending, every, on

DEFAULT_MODEL = "gpt-4.1-mini"
PATIENCE_S = 90.0
"""How long a planner that gives up lets the robot finish its subtask."""


class OpenAIPlanner(ModelPlanner):
    """Talks with people and sets the subtask; `sees=False` sends no images; `persona` is a part to play.

    After `give_up_after` failures of the server in a row it ends the run as failed. An answer that cannot be used is no
    failure: the model is asked again with the reason, then a person is. `context` is how many tokens the model reads,
    `extra_body` further fields of each request, `fallback` who is asked where the server does not answer: MODEL@URL.
    `memory` is a file that keeps where people taught things to belong ("": until the run ends); `prompt` a TOML file
    whose texts stand in place of those of `nodes/planner/model_prompt.toml`.
    """

    provenance = "model:openai-api"

    def __init__(
        self,
        model: str = "",
        base_url: str = "",
        stream: bool = False,
        deadline_s: float = 5.0,
        max_calls: int = 200,
        max_tokens: int = 2000,
        give_up_after: int = 3,
        latency_s: float = 1.5,
        speaker: str = "robot",
        sees: bool = True,
        persona: str = "",
        context: int = 0,
        extra_body: ExtraBody | None = None,
        fallback: str = "",
        memory: str = "",
        prompt: str = "",
    ) -> None:
        if give_up_after < 1:
            raise ParameterError(f"planner: give_up_after is {give_up_after}; expected at least 1")
        if not latency_s >= 0:
            raise ParameterError(f"planner: latency_s is {latency_s}; expected 0 or more")
        settings = settings_from(
            "OPENAI",
            model=model,
            base_url=base_url,
            default_model=DEFAULT_MODEL,
            deadline_s=deadline_s,
            max_calls=max_calls,
            max_tokens=max_tokens,
            stream=stream,
            context=context,
            extra_body=extra_body,
            fallback=fallback,
        )
        super().__init__(settings, speaker, sees, persona, memory, prompt)
        self.give_up_after = give_up_after
        self.request = ChatRequest(self.settings, latency_s=latency_s)
        self.question_ns = 0  # what it asked waits for an answer since; 0: nothing does
        self.answered: tuple[object, ...] = ()
        self.objections = self.heeded = 0  # heard so far; and when the newest usable answer was asked for
        self.giving_up = ""
        self.gave_up_ns = 0
        self.has_wound_up = False
        self.has_ladder = False  # somebody takes over when the budget is spent
        self.has_told_spent = False
        self.thinking: object | None = None  # the one who asks now; a cancelled one may still be winding up

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return how the model's server answers, where it is asked."""
        return self.request.findings(is_asked=is_timed)

    def on_start(self) -> None:
        super().on_start()
        self.request.start(self.clock, self.random.random, budget_of(self.name, self.run_info, self.settings.max_calls))
        self.has_ladder = bool(self.run_info.seats.get("planner", {}).get("ladder"))

    def on_stop(self) -> None:
        summed = f"; {self.history.summed} earlier lines were told as a summary" if self.history.summed else ""
        self.log.info("%s%s", self.request.close(), summed)

    def spending(self) -> Spending:
        return self.request.spending()

    @on(ModelPlanner.heard)
    def listen(self, utterance: Utterance) -> None:
        self.question_ns = 0
        self.objections += may_object(utterance.text)
        self.history.heard(utterance)

    @on(ModelPlanner.robot_said)
    def remember(self, utterance: Utterance) -> None:
        """What the robot said, whether it was this node's idea or the VLM's."""
        trigger = self.context.trigger
        self.history.said(utterance.text, "" if trigger is None else trigger.envelope.ident)

    @on(ModelPlanner.saying)
    def notice_cut(self, saying: Saying) -> None:
        """How far it really got."""
        self.history.spoke(saying)

    def on_preempted(self, fence: Fence) -> bool:
        was_busy, self.thinking = self.thinking is not None, None
        if was_busy:
            self.history.cancelled()
        return was_busy

    @on(ModelPlanner.fence)
    async def fenced(self, fence: Fence) -> None:
        """The request in flight was closed; the model is asked again at once, and told so."""
        if self.preempt(fence):
            self.request.void()
            await self._think()

    @every(hz=0.5)
    async def tick(self) -> None:
        if self.question_ns and self.clock.since_s(self.question_ns) > ANSWER_WITHIN_S:
            self.history.unanswered(ANSWER_WITHIN_S)
            self._say(self.texts.say.unanswered.replace("{seconds}", f"{ANSWER_WITHIN_S:.0f}"))
        if self.request.is_spent and self.has_ladder:
            self._tell_spent()
        elif self.has_wound_up:
            self.finish(ok=False, reason=f"the planner gave up: {self.giving_up}")
        elif self.giving_up:
            self._wind_up()
        else:
            await self._think()
            if self.thinking is None:
                self._repeat()

    async def _think(self) -> None:
        if self.thinking is not None:
            return
        mine = self.thinking = object()
        try:
            while self.thinking is mine and self._has_reason_to_ask() and not await self._ask():
                pass
        finally:
            if self.thinking is mine:
                self.thinking = None

    def _has_reason_to_ask(self) -> bool:
        if self.giving_up or self.request.is_paused or (self.request.is_spent and self.has_ladder):
            return False
        description = self.description.latest()
        was_restarted = self.current is None and description is not None and description.subtask_id != ""
        if not self.history.events and not was_restarted:
            return False
        return news(self.history, description, self.scene.latest()) != self.answered

    async def _ask(self) -> bool:
        """One question and what follows from it; False where an interrupt voided it. No failure is raised."""
        description = self.description.latest()
        asked, objections = news(self.history, description, self.scene.latest()), self.objections
        around = self._around()
        image, scene = self._shown()
        question = question_text(self.history, report_text(self.current, description, scene, self.taught))
        why, refused = "", ""
        for _ in range(1 + ASKED_AGAIN):
            again = f"\n\n{self.texts.again.replace('{why}', why)}" if why else ""
            try:
                text = await self.request.ask(
                    system=system_prompt(around, self.persona, texts=self.texts),
                    text=question + again,
                    schema=answer_schema(around),
                    image=image if self.sees else None,
                )
            except ModelError as problem:
                if self.sees and problem.is_about_images and self.image.latest() is not None:
                    self._go_blind(problem)
                    continue
                if problem.is_unusable and not self.request.is_spent:
                    why = str(problem)
                    self.log.warning("the answer cannot be used: %s", problem)
                    continue
                self._fail(problem)
                return True
            except ValueError as problem:
                self._fail(problem)
                return True
            if text is None:
                self.log.info("request cancelled by an interrupt")
                return False
            try:
                answer = parse(text, around)
            except ModelError as problem:
                why = str(problem)
                self.log.warning("the answer cannot be used: %s", problem)
                continue
            if why := unearned(answer, self.current, description):
                self.log.warning("the answer says more than was measured: %s", why)
                if not refused:
                    refused = text
                    continue
                answer = self._measured(description)
            self.request.succeeded()
            if self.objections != objections:
                self.log.info("somebody may have objected meanwhile: the answer counts for nothing")
                return False
            self.answered, self.heeded = asked, objections
            self._act(answer)
            return True
        self.answered = asked  # the same would come back: it is asked again when something has changed
        self.log.error("no usable answer after %d questions: %s", 1 + ASKED_AGAIN, why)
        self._say(self.texts.say.unusable)
        self._repeat()
        return True

    def _measured(self, told: SceneDescription | None) -> PlannerAnswer:
        """What is said and done in place of a "done" that nobody has measured, and that the model insists on."""
        is_over = told is not None and self.current is not None and told.subtask_id == self.current.id
        if not is_over or told is None or told.progress not in ("finished", "failed"):
            is_at_work = self.current is not None and self.current.state == "work"
            return PlannerAnswer(do="keep", say="" if is_at_work else self.texts.say.unusable)  # never just silence
        say = self.texts.say.unearned.replace("{why}", told.why) if told.why else self.texts.say.unmeasured
        return PlannerAnswer(do="wait", text="Wait", say=say)

    def _go_blind(self, problem: ModelError) -> None:
        """A server that takes no images is asked without them from now on, which is said once."""
        self.sees = False
        self.log.warning("images are left out from now on: %s", problem)
        self._say(self.texts.say.blind)

    def _repeat(self) -> None:
        """Publish the subtask that stands, for a VLM that was restarted or waits for a plan after an interrupt.

        Not while an objection has no answer: the VLM would take the old subtask for one.
        """
        if self.objections == self.heeded:
            self._stand()

    def _act(self, answer: PlannerAnswer) -> None:
        self._learn(answer)
        if answer.do == "keep":
            self._stand()
        else:
            self._set(subtask_of(answer, ""))
        self._say(answer.say)

    def _say(self, text: str) -> None:
        if text:
            self.question_ns = self.clock.now_ns() if text.rstrip().endswith("?") else 0
            self.said.publish(Utterance(speaker=self.speaker, text=text))

    def _fail(self, problem: Exception) -> None:
        self.request.failed(problem)
        self.log.warning("no plan (%d in a row): %s", self.request.failures, problem)
        if self.request.is_spent and self.has_ladder:
            self._tell_spent()
            return
        if self.request.is_spent or self.request.failures >= self.give_up_after:
            self.giving_up, self.gave_up_ns = str(problem), self.clock.now_ns()
        if self.request.failures == 1:
            self._say(self.texts.say.failing)

    def _tell_spent(self) -> None:
        """Leave the seat to its ladder: the subtask that stands is finished, and nothing new is planned here."""
        self.out_of_budget.publish(OutOfBudget(seat="planner", why=self.request.budget.spent))
        if not self.has_told_spent:
            self.has_told_spent = True
            self.log.error("nothing more is planned: %s", self.request.budget.spent)
            self._say(self.texts.say.spent)

    def _wind_up(self) -> None:
        """Let the robot finish its subtask, then hold and say so; the next tick ends the run."""
        description = self.description.latest()
        is_working = (
            self.current is not None
            and self.current.state == "work"
            and description is not None
            and description.progress == "working"
        )
        if is_working and self.clock.since_s(self.gave_up_ns) < PATIENCE_S:
            return
        self.has_wound_up = True
        self._set(Subtask(id="", state="wait", text="Hold still"))
        self._say(self.texts.say.giving_up)
