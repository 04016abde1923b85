"""The guard: the last node before the motors.

A plan of the room: `node` is the shell with the ports, around `state_machine`, which decides by the tables of `modes`.

What decides besides the mode is a part with a table of its own: `stop_latch` (whose stops stand), `soft_hold` (a moment
without motion), `command_sources` (which command may be followed), `retreat` (the way back), and `commanded_body` (what
is asked of the robot, by `motion_profile`, `space` and `pressure_release`).

What watches the robot: `immediate_faults` stop at once, `conduct_watch` for what lasts, by `lasting_faults` and
`base_watch`; and `watchdog`, a program by itself, with `watchdog_table`. `estop_signal` stops it where the bus is in
ruins; `graph_rules` look at the graph.

What keeps the guard's word: `arbitration` says who may command, `persistence` outlives a restart, `feed` tells the
watchdog. `command` and `orders` are `polyrhythm guard`; `table` writes the page.
"""
