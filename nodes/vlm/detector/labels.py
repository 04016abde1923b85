"""The eighty kinds of the COCO data set, in its order, and how large such things usually are."""

from __future__ import annotations

LABELS = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow", "elephant",
    "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee", "skis", "snowboard",
    "ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard", "tennis racket", "bottle",
    "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple", "sandwich", "orange", "broccoli",
    "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch", "potted plant", "bed", "table", "toilet", "tv",
    "laptop", "mouse", "remote", "keyboard", "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator",
    "book", "clock", "vase", "scissors", "teddy bear", "hair dryer", "toothbrush",
)  # fmt: skip
PERSON = "person"
PLACES = frozenset({"bench", "chair", "couch", "bed", "table", "sink", "oven", "microwave", "refrigerator"})
"""What things are put on or into."""

KINDS = tuple(label for label in LABELS if label != PERSON and label not in PLACES)

HEIGHT_M = {
    "bottle": 0.25, "wine glass": 0.2, "cup": 0.1, "fork": 0.19, "knife": 0.22, "spoon": 0.18, "bowl": 0.08,
    "banana": 0.15, "apple": 0.08, "orange": 0.08, "sandwich": 0.08, "chair": 0.9, "couch": 0.8, "table": 0.74,
    "tv": 0.6, "laptop": 0.22, "mouse": 0.04, "remote": 0.17, "keyboard": 0.15, "cell phone": 0.15, "book": 0.22,
    "clock": 0.3, "vase": 0.25, "scissors": 0.18, "teddy bear": 0.3, "ball": 0.2, "potted plant": 0.4, "person": 1.7,
}  # fmt: skip
"""The larger side of the picture of such a thing, roughly."""
USUAL_M = 0.2
