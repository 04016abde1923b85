"""What nodes tell about their health, in Prometheus' text format, and the page that a Prometheus server reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from runtime.coordination.health import Health
from runtime.errors import UserError

Sample = tuple[dict[str, str], float]
_METRICS = {  # name: kind, meaning
    "polyrhythm_timer_hz": ("gauge", "Achieved rate of a timer since its node started"),
    "polyrhythm_timer_target_hz": ("gauge", "Rate that a timer should keep"),
    "polyrhythm_timer_overruns_total": ("counter", "Ticks that never ran because an earlier one ran long"),
    "polyrhythm_timer_lateness_p99_seconds": ("gauge", "99th percentile of how late a timer ran"),
    "polyrhythm_messages_sent_total": ("counter", "Messages that a node published on a topic"),
    "polyrhythm_messages_received_total": ("counter", "Messages that reached a subscription"),
    "polyrhythm_messages_delivered_total": ("counter", "Messages that a subscription handed to its node"),
    "polyrhythm_messages_dropped_total": ("counter", "Messages that a subscription dropped, by reason"),
    "polyrhythm_message_age_seconds": ("gauge", "Age of the newest message of a subscription"),
    "polyrhythm_deadlines_missed_total": ("counter", "Silences that were longer than a subscription's deadline"),
    "polyrhythm_path_p99_seconds": ("gauge", "99th percentile of a path's duration"),
    "polyrhythm_handler_errors_total": ("counter", "Handler calls that ended in an exception"),
    "polyrhythm_process_cpu_seconds_total": ("counter", "Processor time of the process that the node runs in"),
    "polyrhythm_process_memory_bytes": ("gauge", "Resident memory of the process that the node runs in"),
}


def samples_of(health: Health) -> dict[str, list[Sample]]:
    """Each metric's samples of one node."""
    node = {"node": health.node}
    found: dict[str, list[Sample]] = {name: [] for name in _METRICS}

    def add(name: str, value: float, **labels: str) -> None:
        found[f"polyrhythm_{name}"].append(({**node, **labels}, value))

    for timer in health.timers:
        add("timer_hz", timer.hz_achieved, timer=timer.name)
        add("timer_target_hz", timer.hz_target, timer=timer.name)
        add("timer_overruns_total", timer.overruns, timer=timer.name)
        add("timer_lateness_p99_seconds", timer.lateness_p99_ms / 1e3, timer=timer.name)
    for topic, number in health.sent.items():
        add("messages_sent_total", number, topic=topic)
    for port in health.ports:
        add("messages_received_total", port.received, topic=port.topic)
        add("messages_delivered_total", port.delivered, topic=port.topic)
        for reason, number in port.dropped.items():
            add("messages_dropped_total", number, topic=port.topic, reason=reason)
        if port.age_ms is not None:
            add("message_age_seconds", port.age_ms / 1e3, topic=port.topic)
        add("deadlines_missed_total", port.deadlines_missed, topic=port.topic)
    for path in health.paths:
        add("path_p99_seconds", path.p99_ms / 1e3, path=path.name)
    add("handler_errors_total", health.errors)
    add("process_cpu_seconds_total", health.cpu_s)
    add("process_memory_bytes", health.rss_mb * 2**20)
    return found


def page_of(nodes: Iterable[Health]) -> str:
    """All nodes' metrics as text, version 0.0.4."""
    found = [samples_of(health) for health in nodes]
    lines: list[str] = []
    for name, (kind, meaning) in _METRICS.items():
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        for samples in found:
            for labels, value in samples[name]:
                inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
                lines.append(f"{name}{{{inner}}} {value!r}")
    return "\n".join(lines) + "\n"


def is_counter(name: str) -> bool:
    """Whether a metric only grows."""
    return _METRICS[name][0] == "counter"


def meaning_of(name: str) -> str:
    """A metric in a sentence."""
    return _METRICS[name][1]


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


_LOOK_S = 0.05  # between two looks for the order to close


class MetricsPage:
    """`/metrics` on an address, in threads of its own."""

    def __init__(self, address: str, port: int, page: Callable[[], str]) -> None:
        """Raises UserError where the address cannot be taken."""

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # as the standard library calls it
                is_known = self.path.partition("?")[0] in ("/metrics", "/")
                body = page().encode() if is_known else b"see /metrics\n"
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the standard library has it
                """Nothing: each look is not worth a line."""

        try:
            self._server = ThreadingHTTPServer((address, port), Handler)
        except OSError as problem:
            raise UserError(f"{address}:{port} cannot be taken ({problem}); choose another --port") from problem
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_LOOK_S,), name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
