"""The thin server speaks the API that agents speak; training reads both formats. The model itself is stood in for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nodes.episodes.command import main
from nodes.episodes.learning.finetune import read_rows, tokens_of
from nodes.episodes.learning.serve_model import handler
from nodes.episodes.results.store import Store
from runtime.errors import UserError

pytestmark = pytest.mark.processes


class Echo:
    """Answers as a loaded model does; a request without messages is none."""

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """One line, for whatever was asked."""
        assert body["messages"][0]["role"] == "user"
        choice = {"index": 0, "message": {"role": "assistant", "content": '"Let us see."'}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(Echo()))  # type: ignore[arg-type]  # it answers alike
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()
    thread.join(60)


def test_a_served_model_plays_and_its_tokens_are_counted(url: str, tmp_path: Path) -> None:
    run = tmp_path / "run.sqlite"
    asked = ("--task", "cello-with-a-crack", "--turns", "4", "--agents", f"policy@{url}#prompt=small,rules")
    assert main(["run", *asked, "--out", str(run)]) == 0
    with Store.read(run) as store:
        turns = store.turns(store.episodes()[0].id)
        assert [turn.argument for turn in turns if turn.number % 2] == ["Let us see."] * 2
        assert store.tokens() == (2, 14, 6)


def test_training_reads_alpaca_and_messages_and_names_a_line_that_is_neither(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    messages = {"messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "a"}]}
    rows = [{"instruction": "q", "input": "", "output": "b"}, messages]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_rows(path) == [("q", "b"), ("p", "a")]
    path.write_text('{"prompt": "x"}\n')
    with pytest.raises(UserError, match=r"train\.jsonl:1: is neither alpaca nor messages"):
        read_rows(path)
    assert read_rows(tmp_path / "absent.jsonl") == []


class Letters:
    """A tokenizer of one token a letter."""

    eos_token_id = 0

    def apply_chat_template(self, messages: list[dict[str, str]], **_: object) -> str:
        return f"<{messages[0]['content']}>"

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}


def test_only_the_acts_tokens_count_and_longer_pairs_are_left_out() -> None:
    tokens, begins = tokens_of(Letters(), "abc", "xy", 8) or ([], 0)
    assert (tokens, begins) == ([*map(ord, "<abc>xy"), 0], 5)
    assert tokens_of(Letters(), "abc", "xy", 7) is None
