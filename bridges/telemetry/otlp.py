"""OpenTelemetry without its SDK: spans and metrics as OTLP over HTTP; the only file that imports opentelemetry-proto.

A message is a span. It begins when its cause was published and ends when it was itself, so a chain of causes across
nodes is one trace. Batches are posted in a thread; one that nobody takes is dropped and counted.
"""

from __future__ import annotations

import hashlib
import queue
import threading
import urllib.request
from collections import OrderedDict

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    Gauge,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from bridges.telemetry.prometheus import is_counter, meaning_of, samples_of
from runtime.coordination.health import Health
from runtime.hosts.proxies import open_url
from runtime.message import Envelope

MOST_REMEMBERED = 20_000
"""Messages whose trace is known; a cause that is older than that begins a trace of its own."""
MOST_BATCHES = 8
POST_S = 5.0
LAST_S = 0.5
"""How long its end waits for a collector, s."""
_SCOPE = InstrumentationScope(name="polyrhythm")


class Spans:
    """Makes spans of envelopes; a clock's offset to wall time is given once."""

    def __init__(self, offset_ns: int) -> None:
        self._offset_ns = offset_ns
        self._known: OrderedDict[str, tuple[bytes, int]] = OrderedDict()  # by identity: trace, when published

    def span_of(self, envelope: Envelope) -> Span:
        """The span of one message."""
        identity = f"{envelope.topic}:{envelope.source}:{envelope.seq}"
        trace, began_ns = self._known.get(envelope.cause, (_identifier(envelope.cause or identity, 16), None))
        self._known[identity] = (trace, envelope.published_ns)
        if len(self._known) > MOST_REMEMBERED:
            self._known.popitem(last=False)
        end_ns = envelope.published_ns + self._offset_ns
        start_ns = end_ns if began_ns is None else min(began_ns + self._offset_ns, end_ns)
        return Span(
            trace_id=trace,
            span_id=_identifier(identity, 8),
            parent_span_id=_identifier(envelope.cause, 8) if envelope.cause else b"",
            name=envelope.topic,
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=max(0, start_ns),
            end_time_unix_nano=max(0, end_ns),
            attributes=_attributes({"node": envelope.source, "seat": envelope.seat, "message": identity}),
        )


def trace_request(run: str, spans: list[Span]) -> ExportTraceServiceRequest:
    """What an OTLP collector takes at /v1/traces."""
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=_resource(run), scope_spans=[ScopeSpans(scope=_SCOPE, spans=spans)])]
    )


def metrics_request(run: str, nodes: list[Health], wall_ns: int, start_wall_ns: int) -> ExportMetricsServiceRequest:
    """What it takes at /v1/metrics: the same numbers that the Prometheus page has."""
    points: dict[str, list[NumberDataPoint]] = {}
    for health in nodes:
        for name, samples in samples_of(health).items():
            points.setdefault(name, []).extend(
                NumberDataPoint(
                    time_unix_nano=wall_ns, start_time_unix_nano=start_wall_ns, as_double=value,
                    attributes=_attributes(labels),
                )
                for labels, value in samples
            )  # fmt: skip
    metrics = []
    for name, found in points.items():
        metric = Metric(name=name, description=meaning_of(name))
        if is_counter(name):
            temporality = AGGREGATION_TEMPORALITY_CUMULATIVE
            metric.sum.CopyFrom(Sum(data_points=found, is_monotonic=True, aggregation_temporality=temporality))
        else:
            metric.gauge.CopyFrom(Gauge(data_points=found))
        metrics.append(metric)
    scope = ScopeMetrics(scope=_SCOPE, metrics=metrics)
    return ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(resource=_resource(run), scope_metrics=[scope])]
    )


class Collector:
    """Posts to `endpoint`/v1/traces and /v1/metrics, in a thread of its own."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint.rstrip("/")
        self._waiting: queue.Queue[tuple[str, bytes] | None] = queue.Queue(MOST_BATCHES)
        self.dropped = 0
        self.problem = ""
        self._thread = threading.Thread(target=self._post_all, name="otlp", daemon=True)
        self._thread.start()

    def send(self, path: str, request: ExportTraceServiceRequest | ExportMetricsServiceRequest) -> None:
        """Hand over a batch; it is dropped where the collector does not keep up."""
        try:
            self._waiting.put_nowait((path, request.SerializeToString()))
        except queue.Full:
            self.dropped += 1
            self.problem = self.problem or "it does not keep up"

    def close(self) -> None:
        """Post what waits, for a moment; what a collector has not answered by then counts as dropped."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            pass  # it does not keep up
        self._thread.join(LAST_S)
        if self._thread.is_alive():
            self.dropped += sum(batch is not None for batch in self._waiting.queue) + 1  # the last: not answered
            self.problem = self.problem or "it does not answer"

    def _post_all(self) -> None:
        while (batch := self._waiting.get()) is not None:
            path, body = batch
            request = urllib.request.Request(
                self._endpoint + path, data=body, headers={"Content-Type": "application/x-protobuf"}
            )
            try:
                open_url(request, POST_S).close()
            except (OSError, ValueError) as problem:
                self.dropped += 1
                self.problem = str(problem)


def _identifier(text: str, size: int) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=size).digest()


def _attributes(values: dict[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=text)) for key, text in values.items() if text]


def _resource(run: str) -> Resource:
    return Resource(attributes=_attributes({"service.name": "polyrhythm", "service.instance.id": run}))
