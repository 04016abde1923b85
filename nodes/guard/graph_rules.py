"""What a guard knows of the graph around it: who can stop its robot by words, who watches it, what it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from runtime.abilities import HasDevices, devices_of
from runtime.errors import UserError
from runtime.launch.tables.processes_table import RealTime
from runtime.operating_system.real_time import CONTROL_PRIORITY

if TYPE_CHECKING:
    from runtime.launch.file import Launch
    from runtime.launch.graph import Graph, NodeSpec


class KnowsItsGraph:
    """Of a guard's class, as `runtime.abilities.KeepsGraph` asks."""

    @classmethod
    def graph_notes(cls, name: str, launch: Launch) -> Iterator[tuple[str, str]]:
        """Tell who cannot stop its robot, and that nobody watches a real one."""
        graph = launch.graph
        if graph.is_obeyed(name):
            yield from ((f"nodes.{name}", why) for why in _deafness(name, graph))
        yield from _above(graph.nodes[name].process or name, launch.realtime)
        if watched := launch.more.get("watchdog"):
            yield from (("watchdog", note) for note in watched.written.notes())
        for other, spec in graph.nodes.items():
            if "watchdog" not in launch.more and not spec.unset and (devices := devices_of(spec.build())):
                why = f"nothing watches the process of {devices[0]}; add a table [watchdog] (docs/watchdog.md)"
                yield f"nodes.{other}", why

    @classmethod
    def needed(cls, name: str, graph: Graph, without: Collection[str]) -> Iterator[tuple[str, str]]:
        """Keep the guard itself, its driver, and of a real robot the last node that hears "stop"."""
        if not graph.is_obeyed(name):
            return  # nothing here moves
        if name in without:
            yield name, "it is the guard, and nothing reaches the motors but through it"
        for driver in sorted({*without} & _drivers(name, graph)):
            yield driver, "it is the robot's driver, without which the guard guards nothing"
        lifters = graph.roles.get("lifter", [])
        if lifters and {*lifters} <= {*without} and any(_is_real(spec) for spec in graph.nodes.values()):
            yield lifters[0], "the robot is real, and nobody else stops it by words"


def _above(place: str, realtime: Mapping[str, RealTime]) -> Iterator[tuple[str, str]]:
    """Which processes go before the guard's, where cores are short."""
    own = realtime.get(place, RealTime()).fifo
    most = CONTROL_PRIORITY if own is None else own
    for name, asked in realtime.items():
        if name != place and (asked.fifo or 0) > most:
            why = f"fifo is {asked.fifo}, above the {most} of the guard's process {place}, which then waits for it"
            yield f"processes.{name}", f"{why}; give the guard more"


def _deafness(guard: str, graph: Graph) -> Iterator[str]:
    """Why nobody can shout at the robot of this guard, or only over a detour."""
    place = graph.nodes[guard]
    lifters, ears = graph.roles.get("lifter", []), graph.roles.get("ears", [])
    if not lifters:
        yield (
            "nobody can stop this robot by words: no node takes them for it; add one with use = "
            '"nodes.interrupts.reflex:Reflex" to its process'
        )
    elif not ears:
        yield "nobody can shout at this robot: no node hears people; add ears, such as a recogniser or a page"
    if len(lifters) > 1:
        yield f"{' and '.join(lifters)} both take words for it, and each lifts what the other stopped; keep one"
    for name in lifters:
        other = graph.nodes[name]
        if (other.process or name, other.host) != (place.process or guard, place.host):
            yield f"{name} takes words for it in another process: a stop waits for two; put it beside {guard}"


def _drivers(guard: str, graph: Graph) -> set[str]:
    """The nodes that take the guard's orders within its process."""
    return {
        end.node
        for topic in graph.topics.values()
        if any(end.node == guard for end in topic.publishers)
        for end in topic.subscribers
        if end.port.qos.in_process
    }


def _is_real(spec: NodeSpec) -> bool:
    """Whether it moves real things; one that cannot be built here may."""
    try:
        return issubclass(spec.cls, HasDevices) and bool(devices_of(spec.build()))
    except UserError:
        return True
