"""JPEGs: encoded once for everybody, and coarser where the link is slow."""

from __future__ import annotations

import numpy as np
import pytest

from bridges.web.http.jpeg import LONGEST_PAUSE_S, QUALITIES, JpegCache, LinkPace
from nodes.msgs import Image
from runtime.message import Envelope, Stamped
from tests.support.sentences import pattern


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


@pytest.mark.parametrize("shape", [(0, 64, 3), (48, 64), (48, 64, 7), (48,)])
def test_what_is_no_picture_is_refused_in_one_way(shape: tuple[int, ...]) -> None:
    broken = Image(camera="head", captured_ns=1, rgb=np.zeros(shape, dtype=np.uint8))
    with pytest.raises(ValueError, match=pattern("bridges.no_jpeg")):
        JpegCache().encode(Stamped(broken, Envelope("head/image", "camera", 1, 1)), 60)


def test_quality_and_rate_follow_the_link_and_stay_within_bounds() -> None:
    pace = LinkPace()
    for _ in range(50):
        pace.answered(900.0)
    assert (pace.quality, pace.pause_s) == (QUALITIES[0], LONGEST_PAUSE_S)
    for _ in range(50):
        pace.answered(20.0)
    assert (pace.quality, pace.pause_s) == (QUALITIES[-1], 0.0)


def test_a_long_link_holds_more_frames_and_costs_no_quality() -> None:
    pace = LinkPace()
    assert pace.window == 1
    for _ in range(20):
        pace.answered(400.0)
    assert pace.window == 6
    assert pace.quality == QUALITIES[-1]
    for _ in range(5):
        pace.answered(1500.0)  # later than the way alone explains
    assert pace.quality < QUALITIES[-1]


def test_a_short_link_holds_one_frame() -> None:
    pace = LinkPace()
    pace.answered(8.0)
    assert pace.window == 1


def test_depth_is_drawn_in_colours_and_what_is_not_known_is_black() -> None:
    import cv2

    depth_m = np.full((16, 16), 0.3, np.float32)
    depth_m[:, 8:] = 0.0
    rgb = np.zeros((16, 16, 3), np.uint8)
    envelope = Envelope(topic="head/image", source="camera", seq=1, published_ns=0)
    stamped = Stamped(Image(camera="head", captured_ns=0, rgb=rgb, depth_m=depth_m), envelope)
    seen = cv2.imdecode(np.frombuffer(JpegCache().encode_depth(stamped, 88), np.uint8), cv2.IMREAD_COLOR)
    assert seen is not None
    assert seen[8, 2, 2] > 100  # red: near
    assert seen[8, 14].max() < 40
