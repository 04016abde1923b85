"""Metrics and traces of a running graph for tools that people already use: Prometheus, and OpenTelemetry's OTLP."""
