"""Who is in an episode: characters, scenarios with private goals, relationships, and what each may see of whom."""
