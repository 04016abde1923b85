"""`polyrhythm eval`: the same graph over many seeds, tasks and variants, and what can be said of them."""
