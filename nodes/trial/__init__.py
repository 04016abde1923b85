"""A trial of a model server before it holds a seat."""
