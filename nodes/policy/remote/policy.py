"""`RemotePolicy`: an `OnnxPolicy` whose model runs on another machine, which may serve several robots.

On the robot it is a seat like any other: it plays chunks at 20 Hz, keeps to the allow-list and is fenced. A chunk is as
old as the image that it was made from, so the ages tell what the network costs; an answer that is late is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Unpack

from nodes.policy.onnx.policy import LONGEST_S, ActionSettings, OnnxPolicy, deadline_over_age, deadline_problems
from runtime import ParameterError, UserError
from runtime.hosts.address import LOOPBACK, split
from runtime.hosts.hosts_table import is_public_key

REACH_S = 2.0


class RemotePolicy(OnnxPolicy):
    """Asks `polyrhythm serve` at `server`, like "tcp://192.168.1.30:7500"; `key` is that server's public key.

    `of` is the name of one of its models, "" for the first. In virtual time the world stands still for an answer, up to
    10 s; runs are the same to the bit only where every answer is made alone.
    """

    def __init__(
        self,
        server: str,
        key: str = "",
        host: str = "robot",
        within_s: float = 0.4,
        jpeg_quality: int = 85,
        of: str = "",
        **others: Unpack[ActionSettings],
    ) -> None:
        super().__init__(model=server, **others)
        self.server = server
        self.key = key
        self.host = host
        self.within_s = within_s
        self.jpeg_quality = jpeg_quality
        self.of = of

    def problems(self) -> list[str]:
        """What is wrong with the server's place, in sentences; it is not called."""
        problems = self.unit_problems()
        try:
            place, port = split(self.server.removeprefix("tcp://"))
        except UserError:
            place, port = "", None
        if not self.server.startswith("tcp://") or not port:
            problems.append(f"server is {self.server!r}; expected an address like 'tcp://192.168.1.30:7500'")
        elif not self.key and place not in LOOPBACK:
            problems.append(f"server {self.server} is another machine, so its public key is needed: key = '...'")
        if self.key and not is_public_key(self.key):
            problems.append(f"key is {self.key!r}; expected the 40 characters that `polyrhythm keys show` prints there")
        problems += deadline_problems(self.within_s, self.budget_s)
        if not 0 <= self.jpeg_quality <= 100:
            problems.append(f"jpeg_quality is {self.jpeg_quality}; expected 1 to 100, or 0 for pixels as they are")
        return problems

    def age_problems(self, oldest_s: Mapping[str, float]) -> list[str]:
        """Whether an answer at the deadline could still be played."""
        return deadline_over_age(self.within_s, oldest_s)

    @classmethod
    def examine(
        cls,
        server: str,
        key: str = "",
        host: str = "robot",
        **others: object,
    ) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Whether the server lets this robot in, for `polyrhythm doctor`. Raises UserError where its key is missing."""
        from nodes.hosts import keys
        from nodes.hosts.probe import ProbeIdentity, knock

        caller = ProbeIdentity(host, keys.public_of(host), keys.secret_of(host)) if key else ProbeIdentity(host)
        match knock(server, key, caller, REACH_S):
            case "in":
                return [("ok", f"server {server} lets {host} in")]
            case "refused":
                why = f"is the line {host} = {caller.public!r} in its --clients file, and key = its own public key?"
                return [("problem", f"server {server} did not let {host} in; {why}")]
            case "closed":
                return [("note", f"nobody serves at {server} now: polyrhythm serve MODEL --bind ...")]
            case "silent":
                return [("problem", f"server {server} cannot be reached: no answer; is the address right?")]

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return nothing: the model is on another machine."""
        return []

    def on_start(self) -> None:
        from nodes.hosts import keys
        from nodes.policy.remote.session import RemoteSession
        from runtime.hosts.service import Client

        secret = keys.secret_of(self.host) if self.key else ""
        public = keys.public_of(self.host) if self.key else ""
        self._client = Client(self.server, server_key=self.key, secret=secret, public=public)
        if self.clock.is_virtual and not self._client.is_connected(LONGEST_S):
            self._client.close()
            raise ParameterError(f"{self.name}: nobody serves at {self.server}; polyrhythm serve MODEL --bind ...")
        within_s = LONGEST_S if self.clock.is_virtual else self.within_s
        self.session = RemoteSession(self._client, within_s=within_s, jpeg_quality=self.jpeg_quality, of=self.of)
        for port in (self.chunk, self.command):
            port.provenance = f"model:{self.server}"

    def on_stop(self) -> None:
        self._client.close()
