"""The interruption experiment: arms, scenarios, measures and the command that runs them."""
