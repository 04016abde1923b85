"""`polyrhythm serve` asked wrongly: what cannot be is told in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.policy.remote.serve import main as serve_main
from runtime.errors import UserError
from tests.support.models.policy_model import policy_model
from tests.support.sentences import sentence

MODEL = policy_model(32, 24)


@pytest.mark.parametrize(
    "place", ["nonsense", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:-1", ":7500", "::1:7500", "[::1]", "*:7500"]
)
def test_serve_refuses_what_is_no_place(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.onnx").write_bytes(MODEL)
    with pytest.raises(SystemExit) as end:
        serve_main([str(tmp_path / "policy.onnx"), f"--bind={place}"])
    assert end.value.code == 2
    assert sentence("policy.address_expected") in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0x0", "160", "160x", "99999x120", "160x-1", "²x3"])
def test_serve_refuses_what_is_no_size(size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.onnx").write_bytes(MODEL)
    with pytest.raises(SystemExit) as end:
        serve_main([str(tmp_path / "policy.onnx"), f"--size={size}"])
    assert end.value.code == 2
    assert "expected width and height in pixels, at most 8192 each, like 160x120" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--size", "64x48"],
            "of shape \\[1, 3, 24, 32\\]; expected .*"
            + sentence("policy.asked_with", options="--size 64x48 --provider CPU"),
        ),
        (
            ["--size", "32x24", "--provider", "TPU"],
            f"{sentence('models.no_provider', provider='TPU')}.*CPUExecutionProvider",
        ),
    ],
)
def test_serve_asked_for_another_size_or_provider_than_there_is_was_asked_wrongly(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    (tmp_path / "policy.onnx").write_bytes(MODEL)
    with pytest.raises(UserError, match=words):
        serve_main([str(tmp_path / "policy.onnx"), *arguments])


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            f'kitchen = "{"k" * 40}"\nlab = "{"k" * 40}"',
            sentence("policy.has_the_key_of", robot="lab", other="kitchen"),
        ),
        (f'kitchen = "{"k" * 39} "', sentence("policy.no_key", robot="kitchen")),
        ("", "no robot has no key"),
    ],
)
def test_serve_refuses_a_list_of_robots_that_cannot_be(lines: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "policy.onnx").write_bytes(MODEL)
    (tmp_path / "robots.toml").write_text(lines)
    with pytest.raises(UserError) as refusal:
        serve_main([str(tmp_path / "policy.onnx"), "--clients", str(tmp_path / "robots.toml")])
    assert words in str(refusal.value)


def test_serve_names_a_list_of_robots_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "policy.onnx").write_bytes(MODEL)
    gone = tmp_path / "robots.toml"
    with pytest.raises(UserError) as refusal:
        serve_main([str(tmp_path / "policy.onnx"), "--clients", str(gone)])
    assert str(refusal.value) == f"{gone}: {sentence('runtime.no_such_file')}"
