"""Planners: history, descriptions and the newest image in; speech and the next subtask out, about 0.5 Hz.

- On a model: `openai_api`, `realtime_api` with `realtime_talk`; what both share is `model_planner`; what they are asked
  and told is `model_prompt` and `scene_text`; what people taught is `memory`.
- By rules: `scripted` and `partner`; `dialogue` with `questions`, `replies`, `asked` and `answers`, `referents`,
  `beside_stop`, `turns`, `brewing`, and `household`, what worlds differ in; words become orders in `understanding`, by
  `parser`, `verbs`, `lexicon` and `languages`, once `whose` and `spelled` have written out owners, names and places.
  What that leaves unread `gist` takes apart, by `cues`, and `proposals` answers.
- Both know `orders`: what can be ordered, and what there is.
"""
