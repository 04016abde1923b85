"""Control policies: action, image and joint state in; joint commands and feedback out, about 20 Hz.

- scripted: `expert`, its skills (`skill_catalogue`, `skill_phases`), `sight`; how a robot carries them out:
  `stretch_motion` with `stretch_hand`, `arm_motion`
- models: the rooms `onnx` (in this process) and `remote` (on another machine, or behind other projects' servers)
- any of them: `allowed` (what may be done at all), `confirmations` (a person's yes), `action_request` (whose)
"""
