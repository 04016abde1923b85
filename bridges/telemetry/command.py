"""`polyrhythm metrics`: a running graph for Prometheus, and for an OpenTelemetry collector."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bridges.telemetry.prometheus import MetricsPage, page_of
from runtime.clock import NS_PER_S, SystemClock, wall_time_ns
from runtime.command_line.arguments import command, port_number, seconds
from runtime.command_line.attach import StopSignal, add_run_argument, attach, hear
from runtime.coordination.health import Health
from runtime.errors import CodecError, UserError
from runtime.hosts.address import LOOPBACK
from runtime.serialization.codec import decode

if TYPE_CHECKING:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from bridges.telemetry.otlp import Collector

PORT = 9464
"""The port that exporters of OpenTelemetry take by default."""
BATCH_NS = 2 * NS_PER_S
LARGEST_BATCH = 2000


@command("metrics", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0 at Ctrl-C or the end of the run; 2 where it was asked wrongly."""
    if asked.address not in LOOPBACK and not asked.anywhere:
        raise UserError(f"--address {asked.address}: whoever reaches it reads it; say --anywhere if that is meant")
    run = attach(asked.run)
    collector = _collector(asked.otlp) if asked.otlp else None
    nodes: dict[str, Health] = {}
    page = MetricsPage(asked.address, asked.port, lambda: page_of(list(nodes.values())))
    print(f"for Prometheus: http://{asked.address}:{page.port}/metrics", flush=True)
    health = [topic for topic in run.info.topics if topic.startswith("health/")]
    clock = SystemClock()
    start_wall_ns, sent_ns = wall_time_ns(), clock.now_ns()
    told = False
    unreadable: set[str] = set()
    traced: list[Span] = []
    spans = None
    if collector is not None:
        from bridges.telemetry.otlp import Spans

        spans = Spans(wall_time_ns() - clock.now_ns())
        print(f"to OpenTelemetry: {asked.otlp}", flush=True)

    def send(to: Collector) -> None:
        from bridges.telemetry.otlp import metrics_request, trace_request

        to.send("/v1/traces", trace_request(run.title, traced))
        to.send("/v1/metrics", metrics_request(run.title, list(nodes.values()), wall_time_ns(), start_wall_ns))
        traced.clear()

    with StopSignal() as stop_signal:
        try:
            for arrival in hear(run, run.info.topics if collector is not None else health, stop_signal, asked.for_s):
                try:
                    if arrival is not None and arrival.topic in health:
                        stamped = decode(arrival.frames, Health)
                        nodes[stamped.message.node] = stamped.message
                    elif arrival is not None and spans is not None and len(traced) < LARGEST_BATCH:
                        traced.append(spans.span_of(arrival.envelope))
                except CodecError as problem:
                    if arrival is not None and arrival.topic not in unreadable:
                        unreadable.add(arrival.topic)
                        print(f"! {arrival.topic}: {problem}; left out", file=sys.stderr)
                if collector is not None and clock.now_ns() - sent_ns >= BATCH_NS:  # also while nothing comes
                    sent_ns = clock.now_ns()
                    send(collector)
                    if collector.problem and not told:
                        told = True
                        print(f"! {asked.otlp}: {collector.problem}; what it does not take is dropped", file=sys.stderr)
        finally:
            page.close()
            if collector is not None:
                send(collector)  # what came since the last batch
                collector.close()
                if collector.dropped:
                    number = f"{collector.dropped} batch{'es were' if collector.dropped > 1 else ' was'}"
                    print(f"! {asked.otlp}: {collector.problem}; {number} dropped", file=sys.stderr)
    return 0


def _collector(endpoint: str) -> Collector:
    if not endpoint.startswith(("http://", "https://")):
        raise UserError(f"--otlp {endpoint}: expected an address such as http://localhost:4318")
    from bridges.telemetry.otlp import Collector

    return Collector(endpoint)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm metrics",
        description="Serve rates, ages, drops and path durations of a running graph for Prometheus. With --otlp also "
        "send them, and a trace of each chain of causes, to an OpenTelemetry collector. The run notices nothing.",
        epilog="example: polyrhythm metrics --otlp http://localhost:4318",
    )
    add_run_argument(parser)
    parser.add_argument("--address", default=LOOPBACK[0], help="where to listen (default: %(default)s)")
    parser.add_argument("--anywhere", action="store_true", help="allow an --address that other machines reach")
    parser.add_argument("--port", type=port_number, default=PORT, help="default: %(default)s; 0 is any free one")
    parser.add_argument("--otlp", default="", metavar="URL", help="also send to this collector (OTLP over HTTP)")
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    return parser
