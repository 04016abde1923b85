"""`AsynchronousDialogue`: asynchronous talk. Whoever wants to speak bids; speech takes time, can be cut off,
overlaps, or stays away.

Pure like `turn_based.py`. While somebody speaks, the others are asked after each sentence: an urgency above `INTERRUPT`
takes the floor at once, and what was said is kept only as far as it really got; one or two words ("mhm") or a gesture
overlap and take nothing. When nobody wants to speak there is silence, and after `patience_s` of it the talk is stale.

A person leaves an ask open until there is something to say: nobody waits for it, and it may be answered at any time.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nodes.episodes.dialogue.ending import why_broken, winner
from nodes.episodes.dialogue.messages import Pause
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.dialogue.turn_based import Sent, TurnBasedDialogue
from nodes.msgs import Interrupt
from nodes.msgs.episode import Act, Briefing, Observation, Reply, Timing

INTERRUPT = 0.8
WISH = 0.2
"""A bid below this is none."""

AGAIN = 0.15
"""So much less urgent counts the bid of whoever spoke last."""

CLASH = 0.03
"""Two bids as close as this begin at the same time; the weaker breaks off."""

SILENCE_S = 2.0
BACKCHANNEL_WORDS = 2


@dataclass(slots=True)
class SpeechUnderWay:
    """What one seat is saying."""

    seat: int
    act: Act
    began_s: float
    number: int
    note: str
    timing: Timing
    ends_s: tuple[float, ...]  # of each sentence, since it began

    @property
    def words(self) -> list[str]:
        return self.act.argument.split()


class AsynchronousDialogue(TurnBasedDialogue):
    """One asynchronous episode from the first bids to its outcome."""

    def __init__(self, episode: str, briefings: Sequence[Briefing], rules: EpisodeRules, chance: random.Random) -> None:
        super().__init__(episode, briefings, rules, chance)
        self._speech: SpeechUnderWay | None = None
        self._next: tuple[int, Act] | None = None  # who begins when the gap is over
        self._bids: dict[int, tuple[Act, float]] = {}
        self._open: dict[int, int] = {}  # seat -> the ask that a person may answer at any time
        self._people: set[int] = set()  # seats that have left an ask open
        self._is_early = False  # somebody begins when the gap is over, whoever is still thinking
        self._token = 0
        self._sentence = 0
        self._silence_s = 0.0
        self._last_seat = -1

    def begin(self, now_s: float) -> Sent:
        sent = Sent()
        if self.number == 0 and self.outcome is None:
            self.number = 1
            self._ask_all(sent, now_s)
        return sent

    def _take(self, reply: Reply, sent: Sent, now_s: float) -> None:
        """Take in a bid: an interruption or overlap of who speaks now, or a wish to speak next."""
        if reply.is_open:
            self._leave_open(reply, sent, now_s)
            return
        was_open = self._open.pop(reply.seat, None) is not None
        if not self._was_asked(reply, sent, now_s):
            return
        act, problem = self._act_of(reply)
        urgency = min(1.0, max(0.0, reply.urgency))
        if problem or reply.fault not in ("", "cut"):
            self.failures += 1
            fault, note = (reply.fault, reply.note) if reply.fault else ("refused", f"refused: {problem}")
            self._record(reply.seat, Act(), now_s, sent, note=note, fault=fault)
            if broken := why_broken(self.turns, self.names):
                self.fail(broken, now_s, sent, "broken")
                return
            act, urgency = Act(), 0.0
        speech = self._speech
        if speech is not None and reply.seat != speech.seat:
            self._while_speaking(reply.seat, act, urgency, speech, now_s, sent)
        elif not (was_open and act.kind == "none"):  # nobody waited for a person's nothing
            self._bids[reply.seat] = (act, urgency)
        else:
            return
        self._decide_if_free(sent, now_s)

    def expects(self, reply: Reply) -> bool:
        is_open = self._open.get(reply.seat) == reply.ask
        return super().expects(reply) or (is_open and self.outcome is None)

    def again(self, asked: Mapping[int, Observation]) -> list[tuple[int, Observation]]:
        self._waiting.update(self._open)
        self._open.clear()
        return super().again(asked)

    def _leave_open(self, reply: Reply, sent: Sent, now_s: float) -> None:
        """A silent person is a silent participant: the talk goes on."""
        if self._open.get(reply.seat) == reply.ask:
            return
        self._answered(reply.seat)
        self._open[reply.seat] = reply.ask
        self._people.add(reply.seat)
        self._decide_if_free(sent, now_s)

    def _decide_if_free(self, sent: Sent, now_s: float) -> None:
        if self.outcome is not None or self._speech is not None or self._next is not None:
            return
        if not self._waiting:
            self._decide(sent, now_s)
        elif not self._is_early and self._quick() is not None:
            self._is_early = True
            self._pause(_gap_s(self._quick() or 0.0), sent)

    def _quick(self) -> float | None:
        """How urgent it is to whoever may begin before others have thought; who spoke last lets them think."""
        wishes = [
            urgency
            for seat, (act, urgency) in self._bids.items()
            if seat != self._last_seat and urgency >= WISH and act.kind not in ("none", "leave")
        ]
        return max(wishes, default=None)

    def waited(self, token: int, now_s: float) -> Sent:
        """A sentence, a gap or a silence is over."""
        sent = Sent()
        if token != self._token or self.outcome is not None:
            return sent
        if self._next is not None:
            seat, act = self._next
            self._next = None
            self._speak(seat, act, now_s, sent)
        elif self._speech is not None:
            self._sentence_over(self._speech, now_s, sent)
        elif self._is_early:
            self._decide(sent, now_s)
        else:
            self._ask_all(sent, now_s)
        return sent

    def _decide(self, sent: Sent, now_s: float) -> None:
        """Nobody speaks; all bids are in but those of silent people, or the gap is over before the slow have bid."""
        is_early, self._is_early = self._is_early and bool(self._waiting), False
        bids, self._bids = self._bids, {}
        for seat, (act, _) in sorted(bids.items()):
            if act.kind == "leave" and seat in self._present:
                self._leave(seat, act, now_s, sent)
                if self._ended(now_s, sent):
                    return
        wishes = []
        for seat, (act, urgency) in sorted(bids.items()):
            urgency -= AGAIN if seat == self._last_seat else 0.0
            if act.kind not in ("none", "leave") and urgency >= WISH:
                wishes.append((urgency, self._chance.random(), seat, act))
        if not wishes:
            self._be_silent(sent, now_s)
            return
        self._silence_s = 0.0
        wishes.sort(key=lambda wish: (-wish[0], wish[1]))
        urgency, _, seat, act = wishes[0]
        if len(wishes) > 1 and urgency - wishes[1][0] < CLASH and wishes[1][3].kind == act.kind == "speak":
            self._break_off(wishes[1][2], wishes[1][3], seat, now_s, sent)
        for _, _, other, _ in wishes[1:]:
            if other in self._people:  # what a person typed waits for the floor and is not asked for again
                self._bids[other] = bids[other]
        if is_early:
            self._speak(seat, act, now_s, sent)
        else:
            self._next = (seat, act)
            self._pause(_gap_s(urgency), sent)

    def _be_silent(self, sent: Sent, now_s: float) -> None:
        """Ask again after a while, less and less often; people may be silent as long as an answer may take."""
        has_people = any(seat in self._open for seat in self._present)
        patience_s = max(self.rules.patience_s, self.answer_s if has_people else 0.0)
        pause_s = max(SILENCE_S, self._silence_s / 4.0)
        self._silence_s += pause_s
        if self._silence_s > patience_s:
            self._end(f"stale: nobody spoke for {patience_s:g} s", sent, now_s)
        else:
            self._pause(pause_s, sent)

    def _break_off(self, seat: int, act: Act, winner_seat: int, now_s: float, sent: Sent) -> None:
        """Two began at once; this one says a few words and yields."""
        words = act.argument.split()[:3]
        said = Act(kind="speak", argument=" ".join(words) + " -", to=act.to)
        lasts_s = len(words) / self.rules.words_per_s
        note = f"overlaps {self.names[winner_seat]} and yields"
        self._record(seat, said, now_s, sent, lasts_s=lasts_s, note=note, timing="yields")

    def _speak(self, seat: int, act: Act, now_s: float, sent: Sent, *, note: str = "", timing: Timing = "") -> None:
        if act.kind != "speak":
            self._record(seat, act, now_s, sent, note=note, timing=timing)
            self._last_seat = seat
            self.number += 1
            if not self._ended(now_s, sent, played=self.number - 1):
                self._ask_all(sent, now_s)
            return
        ends = _sentence_ends(act.argument)
        seconds = tuple(end / self.rules.words_per_s for end in ends)
        self._speech = SpeechUnderWay(seat, act, now_s, self.number, note, timing, seconds)
        self._sentence = 0
        self._pause(seconds[0], sent)

    def _sentence_over(self, speech: SpeechUnderWay, now_s: float, sent: Sent) -> None:
        self._sentence += 1
        if self._sentence >= len(speech.ends_s):
            self._speech_over(speech, len(speech.words), now_s, sent, note=speech.note, timing=speech.timing)
            if self.outcome is None:
                self._ask_all(sent, now_s)
            return
        said = speech.words[: self._words_said(speech, now_s)]
        for seat in self._present:
            hears = not speech.act.to or self.names[seat] in speech.act.to
            if seat != speech.seat and seat not in self._waiting and hears:
                self._ask_bid(seat, sent, speaking=self.names[speech.seat], so_far=" ".join(said))
        self._pause(speech.ends_s[self._sentence] - speech.ends_s[self._sentence - 1], sent)

    def _while_speaking(
        self, seat: int, act: Act, urgency: float, speech: SpeechUnderWay, now_s: float, sent: Sent
    ) -> None:
        if act.kind == "none" or urgency < WISH:
            return
        speaker = self.names[speech.seat]
        is_short = len(act.argument.split()) <= BACKCHANNEL_WORDS
        if act.kind == "leave":
            self._leave(seat, act, now_s, sent, note=f"overlaps {speaker}", timing="overlaps")
            self._ended(now_s, sent)
        elif act.kind != "speak" or (is_short and urgency <= INTERRUPT):
            self._record(seat, act, now_s, sent, note=f"overlaps {speaker}", timing="overlaps")
        elif urgency > INTERRUPT:
            said = self._words_said(speech, now_s)
            cause = f"{self.episode}/{len(self.turns)}"
            name = self.names[seat]
            aloud = "" if act.to else act.argument  # all nodes hear of an interrupt
            sent.interrupts.append(Interrupt(id=cause, depth="replan", text=aloud, by=name))
            self._speech_over(speech, said, now_s, sent, note=f"interrupted by {name}", timing="interrupted")
            if self.outcome is None:
                self._waiting.clear()  # the moderator's fence voids what the others were about to say
                self._speak(seat, act, now_s, sent, note=f"interrupts {speaker}", timing="interrupts")

    def _words_said(self, speech: SpeechUnderWay, now_s: float) -> int:
        return min(len(speech.words), max(1, round((now_s - speech.began_s) * self.rules.words_per_s)))

    def _speech_over(
        self, speech: SpeechUnderWay, words: int, now_s: float, sent: Sent, *, note: str, timing: Timing
    ) -> None:
        self._speech = None
        self._last_seat = speech.seat
        is_whole = words >= len(speech.words)
        text = speech.act.argument if is_whole else " ".join(speech.words[:words]) + " -"
        act = Act(kind="speak", argument=text, to=speech.act.to)
        lasts_s = now_s - speech.began_s
        self._record(speech.seat, act, speech.began_s, sent, lasts_s=lasts_s, note=note, timing=timing)
        self.number += 1
        self._ended(now_s, sent, played=self.number - 1)

    def _leave(self, seat: int, act: Act, now_s: float, sent: Sent, *, note: str = "", timing: Timing = "") -> None:
        self._record(seat, act, now_s, sent, note=note, timing=timing)
        for asked in (self._waiting, self._open, self._bids):
            asked.pop(seat, None)

    def _ended(self, now_s: float, sent: Sent, *, played: int | None = None) -> bool:
        reasons = []
        if self.turns and (won := winner(self.rules.wins, self.turns[-1:])):
            reasons.append(won)
        if len(self._present) < 2:
            reasons.append(f"left: {', '.join(self._left)}")
        if played is not None and played >= self.rules.max_turns:
            reasons.append(f"turn limit: {self.rules.max_turns} turns")
        if reasons:
            self._end("; ".join(reasons), sent, now_s)
        return bool(reasons)

    def _ask_all(self, sent: Sent, now_s: float) -> None:
        for seat in self._present:
            if seat not in self._waiting and seat not in self._bids:
                self._ask_bid(seat, sent)
        if not self._waiting:
            self._decide(sent, now_s)  # all who are here are people, and none has to say anything

    def _ask_bid(self, seat: int, sent: Sent, *, speaking: str = "", so_far: str = "") -> None:
        is_last, ask = self.number >= self.rules.max_turns, self._open.get(seat)
        observation = self._observation(
            seat, "bid", speaking=speaking, so_far=so_far, silence_s=self._silence_s, is_last=is_last, ask=ask
        )
        if seat in self._open:  # the same ask, with what is new
            sent.observations.append((seat, observation))
        else:
            self._send_ask(seat, sent, observation)

    def _pause(self, seconds: float, sent: Sent) -> None:
        self._token += 1
        sent.pause = Pause(token=self._token, seconds=max(0.001, seconds))


def _gap_s(urgency: float) -> float:
    """How long the floor is free before somebody begins."""
    return round(0.2 + 0.8 * (1.0 - urgency), 3)


def _sentence_ends(text: str) -> list[int]:
    """After how many words each sentence of the text ends."""
    lengths = [len(part.split()) for part in re.findall(r"[^.!?]+[.!?]*", text)]
    total = max(1, len(text.split()))
    return sorted({end for end in itertools.accumulate(lengths) if 0 < end < total} | {total})
