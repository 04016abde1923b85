"""`TrialRecorder`: a recording of its own for each trial of a study, from its start to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodes.recorder import Recorder
from runtime.errors import RecordingError
from runtime.message import Stamped
from runtime.msgs import Trial
from runtime.ports import Subscription
from runtime.qos import QoS

if TYPE_CHECKING:
    from runtime.bag import BagWriter


class TrialRecorder(Recorder):
    """Writes `CODE-trial-N-ATTEMPT.mcap` into `folder`, or into the run's folder; otherwise as a Recorder.

    A trial that is there already, of a pilot or of another study with these codes, is never replaced: the new one is
    called `...-again.mcap`.
    """

    trial = Subscription(Trial, "study/trial", qos=QoS(required=False))

    def __init__(
        self, folder: str = "", jpeg_quality: int = 90, depth: str = "none", exclude: list[str] | None = None
    ) -> None:
        super().__init__(jpeg_quality=jpeg_quality, depth=depth, exclude=exclude)
        self._folder = folder

    def _first(self) -> BagWriter | None:
        """Nothing is recorded before the first trial."""
        return None

    def on_any(self, stamped: Stamped[Any]) -> None:
        """Begin and end with the trials; both words are part of the recording."""
        message = stamped.message
        if not isinstance(message, Trial):
            super().on_any(stamped)
            return
        if message.phase == "started":
            self._end_trial()
            self._begin_trial(message)
        super().on_any(stamped)
        if message.phase != "started":
            self._end_trial()

    def _begin_trial(self, trial: Trial) -> None:
        info: dict[str, Any] = getattr(self, "run_info", {})
        folder = Path(self._folder or str(info.get("folder", ".")))
        wanted = folder / f"{trial.participant}-trial-{trial.number}-{trial.attempt}.mcap"
        path = _free(wanted)
        self.path = str(path)
        if path != wanted:
            self.log.warning("%s is there already, and stays; this trial is recorded as %s", wanted, path.name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._bag = self._open()
        except (OSError, RecordingError) as error:
            self.log.error("the trial is not recorded: %s (%s)", self.path, error)
            return
        self._bag.note(
            "trial",
            {"participant": trial.participant, "number": str(trial.number), "attempt": str(trial.attempt)}
            | {"task": trial.task, "condition": trial.condition},
        )
        self.log.info("recording %s", self.path)

    def _end_trial(self) -> None:
        if self._bag is not None:
            super().on_stop()


def _free(wanted: Path) -> Path:
    """That path, or the first of its namesakes that is not there."""
    path, count = wanted, 1
    while path.exists():
        path = wanted.with_name(f"{wanted.stem}-again{count if count > 1 else ''}{wanted.suffix}")
        count += 1
    return path
