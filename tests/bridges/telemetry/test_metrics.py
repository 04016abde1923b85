"""Prometheus' parser and OpenTelemetry's definitions read what a running graph tells."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client", reason="needs prometheus_client")
pytest.importorskip("opentelemetry.proto", reason="needs the extra telemetry")

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from bridges.telemetry.command import main
from bridges.telemetry.otlp import Spans
from bridges.telemetry.prometheus import page_of
from runtime.coordination.health import Health, PortHealth, TimerHealth
from runtime.message import Envelope
from tests.support.running import Runs, eventually

TIMER = TimerHealth(
    name="tick", hz_target=20.0, hz_achieved=19.5, ticks=100, overruns=3,
    lateness_p50_ms=0.1, lateness_p99_ms=2.0, lateness_max_ms=9.0,
)  # fmt: skip
PORT = PortHealth(topic="beat", received=9, delivered=6, waiting=1, dropped={"expired": 2}, age_ms=250.0)
HEALTH = Health(
    node='strange"\\\nname', pid=1, errors=2, cpu_s=1.5, rss_mb=3.0, sent={"beat": 7},
    timers=(TIMER,),
    ports=(PORT,),
)  # fmt: skip


def parsed(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    return {
        sample.name: {tuple(one.labels.values()): one.value for one in family.samples}
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_own_parser_reads_every_number_and_any_name() -> None:
    found = parsed(page_of([HEALTH]))
    assert found["polyrhythm_timer_hz"] == {(HEALTH.node, "tick"): 19.5}
    assert found["polyrhythm_timer_overruns_total"] == {(HEALTH.node, "tick"): 3.0}
    assert found["polyrhythm_messages_dropped_total"] == {(HEALTH.node, "beat", "expired"): 2.0}
    assert found["polyrhythm_message_age_seconds"] == {(HEALTH.node, "beat"): 0.25}
    assert found["polyrhythm_process_memory_bytes"] == {(HEALTH.node,): 3.0 * 2**20}


def test_a_chain_of_causes_is_one_trace() -> None:
    spans = Spans(offset_ns=10**18)
    heard = spans.span_of(Envelope(topic="heard", source="ears", seq=1, published_ns=1000))
    action = spans.span_of(Envelope(topic="action", source="vlm", seq=5, published_ns=3000, cause="heard:ears:1"))
    command = spans.span_of(Envelope(topic="command", source="policy", seq=9, published_ns=4000, cause="action:vlm:5"))
    other = spans.span_of(Envelope(topic="heard", source="ears", seq=2, published_ns=5000))
    assert heard.trace_id == action.trace_id == command.trace_id != other.trace_id
    assert (action.parent_span_id, command.parent_span_id) == (heard.span_id, action.span_id)
    assert (action.start_time_unix_nano, action.end_time_unix_nano) == (10**18 + 1000, 10**18 + 3000)
    assert (len(heard.trace_id), len(heard.span_id), heard.parent_span_id) == (16, 8, b"")


class Collector:
    """Takes what is posted, as an OTLP collector does."""

    def __init__(self) -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    outer.traces.append(ExportTraceServiceRequest.FromString(body))
                elif self.path == "/v1/metrics":
                    outer.metrics.append(ExportMetricsServiceRequest.FromString(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the standard library has it
                """Nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.mark.processes
def test_a_running_graph_is_read_by_prometheus_and_sent_to_a_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector()
    try:
        with Runs(monkeypatch) as runs:
            runs.start("hello")
            serving = subprocess.Popen(
                [sys.executable, "-c", "import sys; from bridges.telemetry.command import main; main(sys.argv[1:])",
                 "--port", "0", "--otlp", collector.url],
                stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            )  # fmt: skip
            try:
                assert serving.stdout is not None
                address = serving.stdout.readline().split()[-1]

                def page() -> str:
                    with urllib.request.urlopen(address, timeout=10) as answer:
                        return str(answer.read().decode())

                eventually(
                    lambda: ("talker", "beat") in parsed(page()).get("polyrhythm_messages_sent_total", {}), "its beats"
                )
                eventually(lambda: bool(collector.metrics), "metrics at the collector")

                def names() -> set[str]:
                    batches = [batch for request in collector.traces for batch in request.resource_spans]
                    return {span.name for batch in batches for scope in batch.scope_spans for span in scope.spans}

                eventually(lambda: "beat" in names(), "spans at the collector")
                batches = len(collector.metrics)
                serving.terminate()
                assert serving.wait(30) == 0
                assert len(collector.metrics) > batches, "what came since the last batch goes out at the end"
            finally:
                serving.terminate()
                serving.communicate()
    finally:
        collector.close()


@pytest.mark.parametrize("words", [["--address", "0.0.0.0"], ["--otlp", "localhost:4318"]])
def test_what_cannot_be_is_a_sentence(
    words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert main(words) != 0
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.processes
def test_a_collector_that_never_answers_keeps_nobody_waiting_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with Runs(monkeypatch) as runs, socket.create_server(("127.0.0.1", 0)) as silent:
        runs.start("hello")
        serving = subprocess.Popen(
            [sys.executable, "-m", "runtime", "metrics", "--port", "0", "--otlp",
             f"http://127.0.0.1:{silent.getsockname()[1]}"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )  # fmt: skip
        try:
            held, _ = silent.accept()  # it has posted, and waits for an answer
            with held:
                serving.send_signal(signal.SIGINT)
                assert serving.wait(3.0) == 0, "within a second, and what a busy machine takes"
                assert serving.stderr is not None
                assert "it does not answer; " in serving.stderr.read()
        finally:
            serving.kill()
            serving.communicate()
