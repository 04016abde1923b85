"""How an episode goes: its plan and rules, the turn order, the floor, the moderator, what a participant is asked."""
