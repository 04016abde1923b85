"""JPEGs: encoded once for everybody, and coarser where the link is slow."""

from __future__ import annotations

import numpy as np

from bridges.web.picture import LONGEST_PAUSE_S, QUALITIES, JpegCache, LinkPace
from runtime.message import Envelope, Stamped
from runtime.msgs import Image


def image(seq: int) -> Stamped[Image]:
    rgb = np.random.default_rng(seq).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    return Stamped(Image(camera="head", captured_ns=1, rgb=rgb), Envelope("head/image", "camera", seq, 1))


def test_an_image_is_encoded_once_per_quality() -> None:
    cache = JpegCache()
    first = cache.encode(image(1), 60)
    assert cache.encode(image(1), 60) is first
    assert len(cache.encode(image(1), 30)) < len(first)
    assert cache.encode(image(2), 60) != first
    assert first[:2] == b"\xff\xd8"


def test_quality_and_rate_follow_the_link_and_stay_within_bounds() -> None:
    pace = LinkPace()
    for _ in range(50):
        pace.answered(900.0)
    assert (pace.quality, pace.pause_s) == (QUALITIES[0], LONGEST_PAUSE_S)
    for _ in range(50):
        pace.answered(20.0)
    assert (pace.quality, pace.pause_s) == (QUALITIES[-1], 0.0)
