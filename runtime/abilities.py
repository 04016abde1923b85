"""What a node class may tell or take besides, each by a method of that name; whoever needs it asks those that have it.

`Node` declares none of them: models have theirs in `nodes`, real things too, and most nodes none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

from runtime.coordination.health import Spending
from runtime.message import Stamped

if TYPE_CHECKING:
    from runtime.launch.file import Launch
    from runtime.launch.graph import Graph

Finding = tuple[Literal["ok", "note", "problem"], str]


@runtime_checkable
class LoadsLater(Protocol):
    def libraries(self) -> tuple[str, ...]:
        """Return import names of what it loads only once it runs; `polyrhythm doctor FILE` asks if they are here."""


@runtime_checkable
class HasModels(Protocol):
    def model_findings(self, *, is_timed: bool) -> list[Finding]:
        """Return what `polyrhythm doctor FILE` tells of its models; with `--models` they are loaded and timed.

        Raises PolyrhythmError where one cannot be loaded.
        """


@runtime_checkable
class SpendsMoney(Protocol):
    def spending(self) -> Spending | None:
        """Return what was spent on a model in this run."""


@runtime_checkable
class NamesSeats(Protocol):
    def seat_problems(self, seats: Mapping[str, tuple[str, ...]]) -> list[str]:
        """Return in sentences what its parameters do not find in the run's seats, given by name with candidates."""


@runtime_checkable
class NeedsListeners(Protocol):
    def listener_problems(self, heard: Collection[str]) -> list[str]:
        """Return in sentences on which of its topics nobody listens who should; `heard` has those with subscribers."""


@runtime_checkable
class TakesLong(Protocol):
    def age_problems(self, oldest_s: Mapping[str, float]) -> list[str]:
        """Return in sentences what comes too late to be of use; `oldest_s` has by origin what its readers accept."""


@runtime_checkable
class WantsParameters(Protocol):
    def parameter_notes(self) -> list[str]:
        """Return in sentences which parameters somebody should state, although it runs without; told by `check`."""


@runtime_checkable
class HearsTheRest(Protocol):
    def on_missed(self, stamped: Stamped[Any]) -> None:
        """Called instead of `on_any`, before `on_stop`, for a message that waited when there was no time left."""


@runtime_checkable
class LosesThings(Protocol):
    def losses(self) -> Sequence[str]:
        """What the node works with and lost in this run, such as the link to a device, each in a few words.

        What it has again counts, too: the run's last lines tell it, and its exit code is 1.
        """


@runtime_checkable
class ClaimsNames(Protocol):
    def claims(self) -> tuple[str, ...]:
        """Return names of what one run of this account may use at a time; asked before the start."""


@runtime_checkable
class HasDevices(Protocol):
    def devices(self) -> tuple[str, ...]:
        """Return what one run of this machine may use at a time, whoever starts it, like "camera 3"."""


def role_of(cls: type) -> str:
    """What the others of a graph take a node of this class for: its attribute `role`, unless it sits on a seat."""
    return "" if getattr(cls, "seat", "") else getattr(cls, "role", "")


def believes(cls: type) -> str:
    """The role of those on whose word a node of this class acts: its attribute `believes`."""
    return str(getattr(cls, "believes", ""))


def devices_of(node: object) -> tuple[str, ...]:
    """What a node says of `HasDevices`."""
    return node.devices() if isinstance(node, HasDevices) else ()


@runtime_checkable
class ShapesPorts(Protocol):
    @classmethod
    def with_ports(cls, params: Mapping[str, Any]) -> type[Self]:
        """Return the class with the ports that these parameters of a launch file ask for.

        Raises ParameterError where a parameter asks for what cannot be.
        """


@runtime_checkable
class TakesFromRun(Protocol):
    @classmethod
    def run_parameters(cls) -> Mapping[str, str]:
        """Return the keys of `[run]` that it takes, each with the parameter that gets the value; "": it is only told.

        Any name that `[run]` has not itself will do: the same value then reaches all nodes that take it.
        """

    @classmethod
    def run_facts(cls, key: str, value: str) -> Mapping[str, object]:
        """Return what a recording notes of that value. Raises UserError where it is not for this class."""


@runtime_checkable
class KeepsGraph(Protocol):
    """Of the class whose node issues fences; `name` is what that node is called."""

    @classmethod
    def graph_notes(cls, name: str, launch: Launch) -> Iterable[tuple[str, str]]:
        """Return what `check` tells of the nodes around it: the table, such as "nodes.guard", and a sentence."""

    @classmethod
    def needed(cls, name: str, graph: Graph, without: Collection[str]) -> Iterable[tuple[str, str]]:
        """Return which of these nodes may not be left out, each with the reason."""
