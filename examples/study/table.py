"""The table of a study, from its exported CSV: load and length by condition.

polyrhythm study rehearse protocol.toml --out sessions && polyrhythm study export sessions
python table.py sessions/export
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

folder = Path(sys.argv[1])


def rows(name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


sessions, trials, answers = rows("sessions"), rows("trials"), rows("answers")
finished = {one["participant"] for one in sessions if one["outcome"] == "finished"}
print(f"{len(sessions)} participants, {len(finished)} of them to the end")

figures: dict[tuple[str, str], list[float]] = defaultdict(list)  # (condition, measure) -> a value for each trial
for one in trials:
    if one["participant"] in finished and not one["practice"] and one["outcome"] in ("completed", "time"):
        figures[one["condition"], "length, s"].append(float(one["duration_s"]))
scales: dict[tuple[str, str, str], list[float]] = defaultdict(list)  # one questionnaire of one trial
for one in answers:
    if one["participant"] in finished and one["trial"] and one["value"].lstrip("-").isdigit():
        scales[one["participant"], one["condition"], one["questionnaire"]].append(float(one["value"]))
for (_, condition, questionnaire), values in scales.items():
    figures[condition, questionnaire].append(mean(values))

print(f"{'condition':16} {'measure':16} {'n':>3} {'mean':>8} {'sd':>8}")
for (condition, measure), values in sorted(figures.items()):
    spread = stdev(values) if len(values) > 1 else 0.0
    print(f"{condition:16} {measure:16} {len(values):3} {mean(values):8.1f} {spread:8.1f}")
