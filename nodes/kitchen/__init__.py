"""A simulated kitchen with a person in it: the world as data, scenario files, skills, and a scripted robot for them.

- the world: `world`, `scenario`, `mjcf`, `messages`; who lives in it: `person`
- what is seen: `camera` draws it; `vision` tells it from images alone, `eyes` from the simulator
- the planner: `planner` (the node), the room `mind` (what it decides), `memory` (what outlives the run)
- the VLM and the policy: `vlm`, `policy`; the body: `robot`, `driver`
"""
