"""A simulated kitchen with a person in it: the world as data, scenario files, skills, and a scripted robot for them.

- the world: `world`, `scenario`, `household` (what belongs where), `mjcf`, `messages`; who lives in it: `person`
- what is seen: `camera` draws it; `vision` tells it from images alone, `eyes` from the simulator; `seen` (questions to
  a scene)
- the planner: `planner` (the node), `mind` (what it decides), `phrases` (what people say), `tasks` (what it keeps),
  `memory` (what outlives the run)
- the VLM and the policy: `vlm`, `policy`, `route`; the body: `robot`, `driver`
"""
