"""Control policies: action, image and joint state in; joint commands and feedback out, about 20 Hz.

- scripted: `expert`, its skills (`skill_catalogue`, `skill_phases`), `sight`; how a robot carries them out:
  `stretch_motion` with `inverse_kinematics`, `arm_motion`
- models: `onnx_policy` with `onnx_session`, `model_inputs`, `model_tensors`, `chunks`; `adopt` makes such a file
  of LeRobot's, which runs in a process of its own (`lerobot_process`, `lerobot_side`)
- models elsewhere: `remote_policy` with `remote_session`, `serve`; behind other projects' servers: `policy_server`,
  `openpi`, `gr00t`
- any of them: `allowed` (what may be done at all), `action_request` (who asked for it)
"""
