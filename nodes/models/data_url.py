"""An image as the JPEG data URL that chat-completions servers take."""

from __future__ import annotations

import base64

import cv2
import numpy as np

from runtime.msgs import Image


def data_url(image: Image, *, quality: int = 85) -> str:
    """The colours of the image as "data:image/jpeg;base64,...". Raises ValueError where they cannot be encoded."""
    is_encoded, data = cv2.imencode(
        ".jpg", np.ascontiguousarray(image.rgb[:, :, ::-1]), [cv2.IMWRITE_JPEG_QUALITY, quality]
    )
    if not is_encoded:
        raise ValueError(f"an image of shape {image.rgb.shape} cannot be encoded as JPEG")
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode("ascii")
