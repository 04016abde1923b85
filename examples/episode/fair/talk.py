"""`TalkGauge`: how evenly the words of an episode are spread over who speaks."""

from collections import Counter

from nodes.msgs.episode import Turn
from runtime import Message, Node, Publisher, Subscription, on


class TalkShare(Message):
    largest: float  # of all words so far, by whoever said most; 0.5: two spoke evenly


class TalkGauge(Node):
    turn = Subscription(Turn, "episode/turn")
    share = Publisher(TalkShare, "episode/talk_share")

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()

    @on(turn)
    def count(self, turn: Turn) -> None:
        if turn.kind == "speak":
            self.words[turn.speaker] += len(turn.argument.split())
            self.share.publish(TalkShare(largest=max(self.words.values()) / self.words.total()))
