"""`TrialRecorder`: a recording of its own for each trial of a study, from its start to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodes.msgs import RecorderState, RunningTrial, Trial
from nodes.recording.recorder import Recorder
from nodes.recording.ring_buffer import is_unfinished
from runtime import Publisher, QoS, RecordingError, Stamped, Subscription

NO_TRIAL = RecorderState(mode="waiting", why="no trial runs")


class TrialRecorder(Recorder):
    """Writes `CODE-trial-N-ATTEMPT.mcap` into `folder`, or into the run's folder; otherwise as a Recorder.

    A trial that is there already, of a pilot or of another study with these codes, is never replaced: the new one is
    called `...-again.mcap`. A recorder that died in mid-trial and was started again goes on in `...-2.mcap`.
    """

    trial = Subscription(Trial, "study/trial", qos=QoS(required=False))
    running = Subscription(RunningTrial, "study/running", qos=QoS(required=False, late_join=True))
    told = Publisher(RecorderState, "trial_recorder/state")

    def __init__(
        self, folder: str = "", jpeg_quality: int = 90, depth: str = "none", exclude: list[str] | None = None
    ) -> None:
        super().__init__(jpeg_quality=jpeg_quality, depth=depth, exclude=exclude)
        self._folder = folder
        self._state = NO_TRIAL
        self._trial: tuple[str, int, int] = ("", 0, 0)  # the one that runs or ran last

    def _first(self) -> None:
        """Nothing is recorded before the first trial."""

    def on_any(self, stamped: Stamped[Any]) -> None:
        """Begin and end with the trials; both words are part of the recording."""
        message = stamped.message
        is_start = isinstance(message, Trial) and message.phase == "started"
        if is_start or (isinstance(message, RunningTrial) and message.number):  # it may have begun before we did
            self._follow(message)
        super().on_any(stamped)
        if isinstance(message, Trial) and message.phase != "started":
            self._trial = _key(message)
            self._end_trial()
            self._tell(NO_TRIAL)

    def _follow(self, trial: Trial | RunningTrial) -> None:
        """Record this trial, unless that is done already; what is over does not begin again."""
        if _key(trial) != self._trial:
            self._end_trial()
            self._trial = _key(trial)
            self._begin_trial(trial)

    def _begin_trial(self, trial: Trial | RunningTrial) -> None:
        folder = Path(self._folder or self.run_info.folder or ".")
        wanted = folder / f"{trial.participant}-trial-{trial.number}-{trial.attempt}.mcap"
        path, count, run = wanted, 1, self._metadata()
        while path.exists() and not is_unfinished(path, run):
            path = wanted.with_name(f"{wanted.stem}-again{count if count > 1 else ''}{wanted.suffix}")
            count += 1
        self.path = str(path)
        if path != wanted:
            self.log.warning("%s is there already, and stays; this trial is recorded as %s", wanted, path.name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.bag = self.open_next()
        except (OSError, RecordingError) as error:
            self.log.error("the trial is not recorded: %s (%s)", self.path, error)
            self._tell(RecorderState(mode="stopped", file=path.name, why=f"the trial is not recorded: {error}"))
            return
        self.bag.note(
            "trial",
            {"participant": trial.participant, "number": str(trial.number), "attempt": str(trial.attempt)}
            | {"task": trial.task, "condition": trial.condition, "shares_words": str(trial.shares_words).lower()},
        )
        self.log.info("recording %s", self.bag.path)
        self._tell()

    def _end_trial(self) -> None:
        if self.bag is not None:
            super().on_stop()


def _key(trial: Trial | RunningTrial) -> tuple[str, int, int]:
    return trial.participant, trial.number, trial.attempt
