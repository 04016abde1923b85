"""Simulated worlds and scenarios from files, with a Stretch or a robot from a file, and one without physics.

- what stands where, and who says what when: `world_file`, `scenario`; the demo's table in numbers: `table_scene`
- as a model: `room_mjcf` (the room), `mjcf` (a Stretch in it), `file_robot` (another robot)
- what happens: `physics`, `motion`, `grip`, `hand_over`, and `rules` for what physics does not; `robot`, `rehearsal`;
  `kinematic` without any of it
- nodes: `driver`, `camera`, `messages`; for loops of others: `guarded_env`, `gymnasium_env`
"""
