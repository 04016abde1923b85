"""Launch files: TOML tables read into types, the graph they describe, and all that can be checked before a start."""
