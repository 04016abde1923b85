import json
import subprocess
import sys
from typing import Any

from websockets.sync.client import connect
from websockets.typing import Origin

RUN = [sys.executable, "-m", "runtime", "run", "study.toml", "--for", "40"]


class Page:
    """One of the two windows."""

    def __init__(self, address: str) -> None:
        place, token = address.split("#")
        origin = place.rpartition("/")[0]
        self.socket = connect(f"{place.replace('http', 'ws')}/socket", origin=Origin(origin), proxy=None)
        self.say(t="hello", token=token)

    def say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def until(self, asked: dict[str, Any] | None = None, **wanted: Any) -> None:
        """Ask for it, again where it is refused, until the page shows that."""
        shown: dict[str, Any] = {}
        if asked:
            self.say(**asked)
        while any(shown.get(name) != value for name, value in wanted.items()):
            message = json.loads(self.socket.recv(timeout=30))
            if message["t"] == "state":
                self.say(t="seen", n=message["n"])
                shown = message["view"] or shown  # None: as before
                if asked and message["notices"]:
                    self.say(t="resume")  # it may stand since the "Stop!"
                    self.say(**asked)


with subprocess.Popen(RUN, stdout=subprocess.PIPE, text=True) as run:
    assert run.stdout is not None
    address: dict[str, str] = {}
    while len(address) < 2:
        words = run.stdout.readline().split()
        if words[-2:-1] in (["experimenter:"], ["participant:"]):
            address[words[-2]] = words[-1]
    guide, person = Page(address["experimenter:"]), Page(address["participant:"])
    guide.say(t="begin", number=1)
    guide.until(kind="consent")
    person.say(t="agree", ticked=1)
    for trial in (1, 2):
        guide.until(kind="trial", trial=trial)
        guide.until({"t": "start"}, running=True)
        person.say(t="say", text="Stop!")
        guide.say(t="end", how="completed")
        guide.until(kind="questionnaire")
        person.say(t="answer", step=f"trial-{trial}/safe", item="safe", value=7 - trial)
        person.say(t="submit", step=f"trial-{trial}/safe")
    guide.until(kind="thanks")
    run.terminate()
