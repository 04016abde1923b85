"""`RayCluster`: work given to an existing Ray cluster, and what the workers tell of it while they do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from runtime.errors import PolyrhythmError, UserError
from runtime.extras import lacking

Work = TypeVar("Work")
News = TypeVar("News")

MOST_DEATHS = 5
"""So many workers may die over one piece of work without having brought it further."""


class RayCluster(Generic[Work, News]):
    """The Ray cluster that this machine belongs to (RAY_ADDRESS, or the one that `ray start` left word of)."""

    def __init__(self, do: Callable[[Work], Iterator[News]]) -> None:
        """`do` runs on a worker and tells news. Raises UserError where there is no cluster, or no Ray."""
        try:
            import ray
        except ModuleNotFoundError as problem:
            raise UserError(f"--engine ray: {lacking(problem) or problem}") from problem
        try:
            ray.init(address="auto", log_to_driver=False, logging_level="error")
        except ConnectionError as problem:
            raise UserError(
                "--engine ray: there is no Ray cluster here; start one (ray start --head, on other machines ray start "
                "--address=HOST:6379), or name it in RAY_ADDRESS"
            ) from problem
        self.slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._ray: Any = ray
        self._do = ray.remote(num_cpus=1, max_retries=0)(do)
        self._running: dict[Any, int] = {}

    def submit(self, number: int, work: Work) -> None:
        """Have it done as soon as there is room."""
        self._running[self._do.options(num_returns="streaming").remote(work)] = number

    def has_news(self, timeout_s: float) -> bool:
        """Wait until somebody tells something, for so long at most."""
        ready, _ = self._ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        return bool(ready)

    def next(self) -> tuple[int, News | None, str]:
        """What comes next of any of them: news, None at its end, or None and why its worker died."""
        (answer,), _ = self._ray.wait(list(self._running), num_returns=1)
        number = self._running[answer]
        try:
            return number, self._ray.get(next(answer)), ""
        except StopIteration:
            del self._running[answer]
            return number, None, ""
        except self._ray.exceptions.RayTaskError as problem:  # of the program, so it would happen anywhere
            told = problem.cause if isinstance(problem.cause, PolyrhythmError) else None
            raise told or PolyrhythmError(f"a Ray worker failed: {str(problem).strip()[-600:]}") from problem
        except self._ray.exceptions.RayError as problem:
            del self._running[answer]
            return number, None, str(problem).partition("\n")[0]

    def close(self) -> None:
        """Take leave of it."""
        self._ray.shutdown()
