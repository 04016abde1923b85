"""From pictures to things: colours, depth as points, the table, and what stands on it."""
