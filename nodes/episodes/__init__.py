"""Social episodes between characters with private goals: profiles, who sees what, and (in time) the nodes that talk."""
