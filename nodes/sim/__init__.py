"""Simulated worlds and scenarios from files, with a Stretch or a robot from a file, and one without physics.

- the rooms `world` (what stands where, and its model), `people` and `rendering`
- what happens: `physics`, `motion`, `grip`, `hand_over`, and `rules` for what physics does not; `robot`, `file_robot`,
  `rehearsal`; `kinematic` without any of it
- nodes: `driver`, `camera`, `messages`; for loops of others: `guarded_env`, `gymnasium_env`
"""
