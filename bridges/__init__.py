"""Nodes with one foot outside."""
