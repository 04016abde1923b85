"""`polyrhythm eval`: the same graph over many seeds, tasks and variants, and what can be said of them.

- what is run: `command`, `trials`, `arms`, `scenario_files`; how: `running`, `folder`
- what it says: `figures`, `table`, `log`, `grades`, `own_measures`
- suites of words: `reflex`, `reflex_cost`, `understanding`
"""
