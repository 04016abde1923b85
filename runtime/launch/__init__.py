"""Launch files: TOML tables read into types, the graph they describe, and all that can be checked before a start.

- Tables: `file` reads them all; `nodes_table`, `processes_table`, `seats_table`, `links_table`, `budgets_table`,
  `run_table`, and `more_tables` of other rooms; `latency` is a delay in them, and
  `left_out` takes nodes out of them.
- The graph and what is known of it: `graph`, `one_file`, `handler_ports`, `process_plan`, `provenance`, `source`.
- Checks: `class_check` of a node's class, `ownership` of its attributes, `path_check` and `response_times` of ways
  through the graph; `given` of what a call in Python was given.
"""
