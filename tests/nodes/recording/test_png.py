"""PNG files hold every pixel as it is, of drawn pictures and of a camera's, and any reader reads them."""

from __future__ import annotations

import io
import threading

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from nodes.recording.png import encode_png, is_drawn


def drawn(height: int, width: int) -> NDArray[np.uint8]:
    """A few rectangles of one colour each."""
    picture = np.full((height, width, 3), (200, 220, 240), dtype=np.uint8)
    picture[height // 3 :, width // 4 :] = (120, 40, 10)
    picture[height // 2 :, : width // 2] = (0, 255, 7)
    return picture


def noisy(height: int, width: int) -> NDArray[np.uint8]:
    """What no drawing has: a little noise on every pixel."""
    light = np.random.default_rng(0).normal(128, 20, (height, width, 3))
    return np.clip(light, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("picture", [drawn(120, 160), noisy(48, 64)], ids=["drawn", "noisy"])
def test_two_other_readers_see_every_pixel(picture: NDArray[np.uint8]) -> None:
    data = encode_png(picture)
    by_opencv = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert by_opencv is not None
    np.testing.assert_array_equal(np.asarray(by_opencv)[..., ::-1], picture)
    with Image.open(io.BytesIO(data)) as image:
        image.verify()  # the checksums of its parts too
    with Image.open(io.BytesIO(data)) as image:
        np.testing.assert_array_equal(np.asarray(image), picture)


@settings(deadline=None)
@given(height=st.integers(1, 9), width=st.integers(1, 9), seed=st.integers(0, 99))
def test_any_size_comes_back(height: int, width: int, seed: int) -> None:
    picture = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    found = cv2.imdecode(np.frombuffer(encode_png(picture), np.uint8), cv2.IMREAD_COLOR)
    assert found is not None
    np.testing.assert_array_equal(np.asarray(found)[..., ::-1], picture)


def test_a_view_of_a_larger_picture_is_written_as_it_looks() -> None:
    picture = noisy(20, 30)[2:12, 5:25]
    found = cv2.imdecode(np.frombuffer(encode_png(picture), np.uint8), cv2.IMREAD_COLOR)
    assert found is not None
    np.testing.assert_array_equal(np.asarray(found)[..., ::-1], picture)


def test_a_camera_is_told_from_a_drawing() -> None:
    assert is_drawn(drawn(120, 160))
    assert not is_drawn(noisy(120, 160))


def test_the_encoder_keeps_every_pixel_under_stress() -> None:
    """Threads side by side, pictures of all kinds and alignments, and memory that is used over and over again."""
    random = np.random.default_rng(7)
    pictures = [
        np.ascontiguousarray(kind(int(random.integers(1, 130)), int(random.integers(1, 170))))
        for kind in (drawn, noisy)
        for _ in range(20)
    ]
    pictures += [np.asfortranarray(picture) for picture in pictures[:10]]
    wrong: list[tuple[int, ...]] = []

    def encode(seed: int) -> None:
        own = np.random.default_rng(seed)
        for _ in range(60):
            picture = pictures[int(own.integers(len(pictures)))]
            rubbish = np.full(int(own.integers(1, 300_000)), own.integers(256), np.uint8)
            found = cv2.imdecode(np.frombuffer(encode_png(picture), np.uint8), cv2.IMREAD_COLOR)
            del rubbish
            if found is None or not np.array_equal(np.asarray(found)[..., ::-1], picture):
                wrong.append(picture.shape)

    threads = [threading.Thread(target=encode, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
