"""A coach beside an episode (SOTOPIA-Omega): step ratings, strategies, a negotiation workflow, regeneration."""
