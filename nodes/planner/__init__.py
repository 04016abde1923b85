"""Planners: history, descriptions and the newest image in; speech and the next subtask out, about 0.5 Hz.

- On a model: `openai_api`, `realtime_api` with `realtime_talk`; what both share is `model_planner`; what they are asked
  and told is `model_prompt` and `scene_text`; what people taught is `memory`.
- By rules: `scripted` and `partner`; what words mean is `words`, the dialogue `talk`.
- Both know `orders`: what can be ordered, and what there is.
"""
