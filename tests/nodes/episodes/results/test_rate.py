"""`episodes rate` over HTTP: nothing before the known dialogue, whole forms only, two raters, and what comes of it."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.evaluation.dimensions import SEVEN
from nodes.episodes.results.rate import RatingPages, qualification, rating_server
from nodes.episodes.results.store import Store
from runtime.errors import UserError
from tests.support.sentences import sentence

KNOWN = {f"known-{place}": str(one.low) for place, one in enumerate(qualification().expected)}


class Site:
    """The page as a browser sees it."""

    def __init__(self, run: Path) -> None:
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(run, ready))
        self._thread.start()
        assert ready.wait(20)

    def _serve(self, run: Path, ready: threading.Event) -> None:
        with Store.open(run) as store:
            pages = RatingPages(store, ["ada", "ben", "cyd"])
            self.keys = {name: key for key, name in pages.keys.items()}
            self._server = rating_server(pages, 0)
            self.address = self._server.url.rstrip("/")
            ready.set()
            self._server.serve()

    def close(self) -> None:
        self._server.stop()
        self._thread.join()

    def get(self, path: str, rater: str) -> str:
        return self._open(f"{path}?key={self.keys[rater]}", None)

    def send(self, path: str, rater: str, form: dict[str, str]) -> str:
        return self._open(f"{path}?key={self.keys[rater]}", urllib.parse.urlencode(form).encode())

    def _open(self, target: str, data: bytes | None) -> str:
        with urllib.request.urlopen(self.address + target, data, timeout=20) as answer:
            return unescape(answer.read().decode())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    assert main(["run", "--task", "quiet-hours", "--agents", "rules", "--agents", "scripted", "--out", str(path)]) == 0
    return path


@pytest.fixture
def site(run: Path) -> Iterator[Site]:
    found = Site(run)
    try:
        yield found
    finally:
        found.close()


def whole_form(page: str, score: str = "0") -> dict[str, str]:
    """All that the page asks for."""
    form = dict.fromkeys(re.findall(r"type='radio' name='(\d-[^']+)'", page), score)
    form |= dict.fromkeys(re.findall(r"textarea name='([^']+)'", page), "as I read it")
    return form | dict(re.findall(r"type='hidden' name='([^']+)' value='([^']*)'", page))


def test_nobody_rates_before_the_known_dialogue_and_what_was_wrong_is_told(site: Site) -> None:
    assert "scores are known" in site.get("/rate", "ada")
    refused = site.send("/", "ada", KNOWN | {"known-0": "9"})
    assert "Not yet" in refused
    assert qualification().expected[0].why in refused
    assert sentence("episodes.rate_the_next") in site.send("/", "ada", KNOWN)
    assert sentence("episodes.rate_the_next") in site.get("/", "ada"), "once is enough"
    assert "scores are known" in site.get("/", "ben"), "each person for themselves"


def test_a_whole_form_is_kept_and_half_of_one_changes_nothing(site: Site, run: Path) -> None:
    site.send("/", "ada", KNOWN)
    page = site.get("/rate", "ada")
    story = page.split("<form")[0]
    assert "rules" not in story, "raters are not told who plays"
    assert "because of turn" not in story, "only offline agents say what they follow from"
    form = whole_form(page)
    for missing in ("0-GOAL", "why-1-SEC"):
        again = site.send("/rate", "ada", {name: value for name, value in form.items() if name != missing})
        assert "role='alert'" in again
        assert "as I read it" in again, "what was written stays in the form"
    assert "role='alert'" in site.send("/rate", "ada", form | {"0-GOAL": "11"})
    assert "role='alert'" in site.send("/rate", "ada", form | {"0-GOAL": "a lot"})
    with Store.read(run) as store:
        assert store.ratings() == []
    assert "You have rated 1" in site.send("/rate", "ada", form)
    with Store.read(run) as store:
        assert len(store.ratings()) == 2 * len(SEVEN)
        assert set(store.db.execute("SELECT text FROM rationales")) == {("as I read it",)}


def test_each_episode_gets_two_raters_and_then_everybody_is_done(
    site: Site, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rater in ("ada", "ben", "cyd"):
        site.send("/", rater, KNOWN)
    rated = {"ada": 0, "ben": 0, "cyd": 0}
    for rater in ("ada", "ben", "cyd"):
        for _ in range(3):  # one more than there are episodes
            if "<textarea" not in (page := site.get("/rate", rater)):
                break
            other = {name: "1" for name in ("0-GOAL", "1-GOAL", "0-REL", "1-REL") if rater == "ben"}
            site.send("/rate", rater, whole_form(page) | other)
            rated[rater] += 1
    assert rated == {"ada": 2, "ben": 2, "cyd": 0}
    page = site.get("/pair", "cyd")
    assert page.count("Turn 1:") == 2
    site.send("/pair", "cyd", whole_form(page) | {"choice": "first"})
    assert "All is done" in site.get("/pair", "cyd")
    assert main(["report", str(run), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    goal = next(one for one in figures["agreement"] if one["dimension"] == "GOAL")
    assert goal["items"] == 4
    assert goal["agreeing"] == 1.0, "0 and 1 of 10 are one of five classes"
    assert goal["kappa"] == {"3": 1.0, "4": 1.0, "5": 1.0}
    relationship = next(one for one in figures["agreement"] if one["dimension"] == "REL")
    assert relationship["agreeing"] == 0.0, "0 and 1 on -5 to 5 are two"
    (compared,) = figures["naturalness"]
    assert (compared["first"], compared["second"]) == ("AGENTS: rules", "AGENTS: scripted")
    assert sorted((compared["better"], compared["worse"])) == [0, 1]
    assert main(["report", str(run), "--out", str(run.parent / "report")]) == 0
    page = (run.parent / "report" / "report.html").read_text()
    assert "<td>GOAL</td><td>4</td><td>1.000</td><td>1.000</td><td>1.000</td><td>1.000</td>" in page
    assert "<td>AGENTS: rules</td><td>" in page


def test_strangers_other_names_and_other_forms_are_refused(site: Site, run: Path) -> None:
    for target, data in (("/?key=guess", None), ("/", None), ("/elsewhere?key=" + site.keys["ada"], None)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            site._open(target, data)
        assert refused.value.code == 404
        refused.value.close()
    request = urllib.request.Request(site.address + f"/?key={site.keys['ada']}", headers={"host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    assert refused.value.code == 403
    refused.value.close()
    site.send("/", "ada", KNOWN)
    with pytest.raises(urllib.error.HTTPError) as refused:
        site.send("/pair", "ada", {"first": "x", "second": "y", "choice": "first"})
    refused.value.close()
    assert "role='alert'" in site.send(
        "/rate", "ada", {"episode": "x"} | whole_form(site.get("/rate", "ada")) | {"episode": "x"}
    )
    with Store.read(run) as store:
        assert not store.preferences()
        assert not store.ratings()


def test_raters_without_names_and_runs_without_episodes_are_refused(run: Path) -> None:
    with Store.open(run) as store:
        for raters, each in (([], 1), (["ada", "ada"], 1), (["ada"], 2), ([" "], 1)):
            with pytest.raises(UserError):
                RatingPages(store, raters, each=each)


def test_comparisons_tell_something_are_bounded_and_neither_mode_stands_on_one_side(tmp_path: Path) -> None:
    """The question of SCRIPT against AGENTS: the same tasks, made in two modes, sides drawn, and blind."""
    path = tmp_path / "modes.sqlite"
    tasks = ("quiet-hours", "cello-with-a-crack", "give-me-the-keys", "van-with-a-cough")
    asked = [part for task in tasks for part in ("--task", task)]
    assert main(["run", *asked, "--mode", "AGENTS,MINDREADERS", "--seeds", "2", "--out", str(path)]) == 0
    raters = [f"r{n}" for n in range(8)]
    with Store.open(path) as store:
        mode = {row.id: row.transparency for row in store.episodes()}
        pages = RatingPages(store, raters, pairs=5)
        firsts, orders = [], set()
        for rater in raters:
            seen = []
            while (pair := pages.next_pair(rater)) is not None:
                assert pair == pages.next_pair(rater), "the same until it is answered"
                assert {mode[one] for one in pair} == {"AGENTS", "MINDREADERS"}, "two of one mode tell nothing"
                store.save_preference(*pair, rater, "first" if mode[pair[0]] == "AGENTS" else "second", "")
                seen.append(frozenset(pair))
                firsts.append(mode[pair[0]])
            assert len(seen) == len(set(seen)) == 5
            orders.add(tuple(sorted(map(sorted, seen[:1]))[0]))
        assert 0.25 < firsts.count("AGENTS") / len(firsts) < 0.75
        assert len(orders) > 1, "not everybody begins with the same"
        story = pages.page("/pair", next(iter(pages.keys)))
        assert "MINDREADERS" not in story
    assert main(["report", str(path), "--json", "--out", str(tmp_path / "report")]) == 0
    figures = json.loads((tmp_path / "report" / "figures.json").read_text())
    (compared,) = figures["naturalness"]
    assert (compared["first"], compared["second"]) == ("AGENTS: rules", "MINDREADERS: rules")
    assert (compared["better"], compared["worse"], compared["share"]) == (40, 0, 1.0)
    assert compared["tasks"] == 4
    assert compared["p"] == pytest.approx(2 / 2**4), "four tasks, however many raters"
    assert compared["first_words"] > 3


def test_a_rater_keeps_the_address_when_the_page_is_opened_again(run: Path) -> None:
    with Store.open(run) as store:
        before = RatingPages(store, ["ada", "ben"]).keys
    with Store.open(run) as store:
        after = RatingPages(store, ["ben", "cyd", "ada"]).keys
    assert before.items() <= after.items()
    assert sorted(after.values()) == ["ada", "ben", "cyd"]
