"""The interruption experiment: a person, scenarios, measures and the command that runs them."""
