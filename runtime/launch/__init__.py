"""Launch files: TOML read into the graph it describes, and what each process of a run gets of it.

Its rooms: `tables` reads them, and `checks` finds what can be known before a start.
"""
