"""Every proof runs on one commit: a failure hides none, Ctrl-C loses none, and another commit begins anew."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench import proof
from bench.code_commit import commit_of
from bench.proof import PROOFS, Bound, Proof, main
from tests.support.running import eventually
from tests.support.sentences import sentence

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "code.py").write_text("1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    return tmp_path


def counted(name: str, code: int = 0) -> Proof:
    """A proof that leaves a line for each of its runs."""
    program = f"open('runs/{name}', 'a').write('x'); raise SystemExit({code})"
    return Proof(name, f'{sys.executable} -c "{program}"', 1)


def table(checkout: Path) -> list[list[str]]:
    lines = (checkout / "docs" / "results" / "proof.md").read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]


def runs_of(checkout: Path, name: str) -> int:
    file = checkout / "runs" / name
    return len(file.read_text()) if file.exists() else 0


def test_one_that_fails_hides_no_other_and_makes_the_code_1(checkout: Path) -> None:
    assert main([], [counted("bad", 3), counted("good")], checkout) == 1
    assert [(row[0], row[6]) for row in table(checkout)] == [("bad", "**failed, code 3**"), ("good", "passed")]


def test_what_has_ended_on_this_commit_is_not_run_again_and_what_failed_only_when_asked(checkout: Path) -> None:
    proofs = [counted("bad", 3), counted("good")]
    main([], proofs, checkout)
    main([], proofs, checkout)
    assert (runs_of(checkout, "bad"), runs_of(checkout, "good")) == (1, 1)
    main(["--again"], proofs, checkout)
    assert (runs_of(checkout, "bad"), runs_of(checkout, "good")) == (2, 1)


def test_another_commit_begins_anew_and_says_what_has_not_run(checkout: Path) -> None:
    proofs = [counted("one"), counted("two")]
    main([], proofs, checkout)
    (checkout / "code.py").write_text("2\n")
    git(checkout, "commit", "-qam", "two")
    assert main(["--only", "one"], proofs, checkout) == 0
    assert [(row[0], row[6]) for row in table(checkout)] == [("one", "passed"), ("two", "**not run**")]
    assert runs_of(checkout, "one") == 2


def test_a_clone_with_the_results_committed_goes_on_where_this_machine_was(checkout: Path, tmp_path: Path) -> None:
    proofs = [counted("one"), counted("two")]
    main(["--only", "one"], proofs, checkout)
    git(checkout, "add", "docs")
    git(checkout, "commit", "-qm", "what was proved")
    (checkout / "README.md").write_text("A page.\n")
    git(checkout, "add", "README.md")
    git(checkout, "commit", "-qm", "a page")
    other = tmp_path / "other"
    git(checkout, "clone", "-q", ".", str(other))
    assert main([], proofs, other) == 0
    assert (runs_of(other, "one"), runs_of(other, "two")) == (0, 1)
    assert commit_of(other) == commit_of(checkout), "results and pages make no other code"


@pytest.mark.parametrize(
    ("printed", "outcome", "measured"),
    [
        ({"all": [{"arm": "A", "right": {"successes": 9, "runs": 10}}], "wrong": 0}, "passed", True),
        ({"all": [{"arm": "A", "right": {"successes": 8, "runs": 10}}], "wrong": 0}, "**out of bounds**", True),
        ({"all": [{"arm": "A", "right": {"share": 0.95}}], "wrong": 1}, "**out of bounds**", True),
        ({"all": [{"arm": "B", "right": {"share": 0.95}}], "wrong": 0}, "**out of bounds**", False),
        ("no figures", "**out of bounds**", False),
    ],
)
def test_a_proof_that_measures_passes_only_within_its_bounds(
    checkout: Path, printed: object, outcome: str, measured: bool
) -> None:
    bounds = (Bound("right", "all/arm=A/right", least=0.9), Bound("wrong", "wrong", most=0.0))
    measures = Proof("one", f"echo '{json.dumps(printed)}'", 1, bounds=bounds)
    assert main([], [measures], checkout) == (outcome != "passed")
    assert table(checkout)[0][6] == outcome
    assert ("at least 0.9" in table(checkout)[0][8]) is measured


def test_each_eval_that_is_a_proof_has_bounds_and_prints_its_figures() -> None:
    evals = [one for one in PROOFS if "polyrhythm eval" in one.command]
    assert all(one.bounds and "--json" in one.command and (not one.full or "--json" in one.full) for one in evals)
    assert all(one in evals for one in PROOFS if one.bounds)


def test_what_a_machine_cannot_do_is_no_proof_and_is_tried_again(checkout: Path) -> None:
    bare = Proof("bare", "echo 'bare: skipped: only root can'", 1)
    assert main([], [bare], checkout) == 1
    assert table(checkout)[0][6] == "**skipped: only root can**"
    assert proof.ended(checkout, commit_of(checkout), is_full=False) == {}


def test_the_short_form_fits_into_a_sitting_and_says_what_it_leaves_out() -> None:
    short = [one.of(is_full=False) for one in PROOFS if one.command]
    assert sum(minutes for _, minutes, _ in short) <= 180
    assert all(one.power != "whole" for one in PROOFS if one.full and one.command)


def test_figures_of_another_commit_are_named_on_the_page(checkout: Path) -> None:
    commit = commit_of(checkout)
    (checkout / "docs" / "same.md").write_text(f"Measured on commit {commit[:8]}.")
    (checkout / "docs" / "other.md").write_text(
        "Commits `0123abcd` and 89ab0123 (sha256 `ac8e00f9`); a decade of 12345678 runs."
    )
    assert main([], [counted("one")], checkout) == 0
    found = (checkout / "docs" / "results" / "proof.md").read_text().partition("## Figures of other commits")[2]
    assert found.split() == ["-", "docs/other.md:", "0123abcd,", "89ab0123"]
    (checkout / "docs" / "other.md").unlink()
    git(checkout, "add", "docs")
    git(checkout, "commit", "-qm", "a page more")
    assert main(["--table"], [counted("one")], checkout) == 0
    assert "None." in (checkout / "docs" / "results" / "proof.md").read_text()
    assert table(checkout)[0][6] == "passed", "the table stays that of the commit that was proved"


def test_every_figure_is_of_a_commit_that_there_is_and_the_page_of_proofs_names_those_of_others() -> None:
    git_of = ["git", "-C", str(ROOT)]
    is_whole = subprocess.run([*git_of, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if is_whole.stdout.strip() != "false":
        pytest.skip("there is no history here")
    cited = {commit for commits in proof.cited(ROOT).values() for commit in commits}
    known = subprocess.run([*git_of, "rev-list", "HEAD"], capture_output=True, text=True, check=True).stdout.split()
    assert {one for one in cited if not any(commit.startswith(one) for commit in known)} == set()
    if not proof.PAGE.exists():
        return
    table, _, named = proof.PAGE.read_text().partition("## Figures of other commits")
    commit = re.search(r"on commit ([0-9a-f]+)", table)
    assert commit is not None
    others = [f"- {page}: {', '.join(commits)}" for page, commits in proof.of_another(ROOT, commit[1]).items()]
    assert named.split("\n\n")[1].strip().splitlines() == (others or ["None."]), (
        "make the page anew: python -m bench.proof --table"
    )


def test_code_with_changes_is_said_and_never_gone_on_with(checkout: Path) -> None:
    (checkout / "code.py").write_text("2\n")
    for times in (1, 2):
        main([], [counted("one")], checkout)
        assert runs_of(checkout, "one") == times
    assert "with changes" in (checkout / "docs" / "results" / "proof.md").read_text()


def test_the_long_form_and_the_short_one_are_kept_apart(checkout: Path) -> None:
    short = counted("one")
    both = Proof("one", short.command, 1, short.command, 5, power="a part")
    main([], [both], checkout)
    assert table(checkout)[0][7] == "a part"
    main(["--full"], [both], checkout)
    assert runs_of(checkout, "one") == 2
    assert table(checkout)[0][7] == "whole"


@pytest.mark.processes
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_or_a_closed_terminal_ends_what_runs_and_the_same_command_goes_on(
    checkout: Path, number: signal.Signals
) -> None:
    program = "from pathlib import Path; from bench.proof import Proof, main; import sys; " + (
        "proofs = [Proof('first', 'true', 1), Proof('long', 'sleep 1000', 1)]; "
        f"sys.exit(main([], proofs, Path({str(checkout)!r})))"
    )
    began = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.DEVNULL)
    eventually(lambda: (checkout / "runs" / "proof-long.log").exists(), "the second proof runs")
    os.kill(began.pid, number)
    assert began.wait(60) == proof.INTERRUPTED
    assert set(proof.ended(checkout, commit_of(checkout), is_full=False)) == {"first"}


def test_a_name_that_is_none_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "zorp"]) == 2
    assert sentence("bench.no_such_proof") in capsys.readouterr().err


def test_every_command_that_make_runs_is_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = [command for one in PROOFS for command in (one.command, one.full) if command.startswith("make ")]
    assert [command for command in commands if f"\n{command.split()[1]}:" not in makefile] == []
