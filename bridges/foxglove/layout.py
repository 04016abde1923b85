"""A layout for Foxglove's viewer: cameras, the scene in space, joints, guard, seats, words, the two stops."""

from __future__ import annotations

from foxglove.layouts import (
    BaseRendererGridLayerSettings,
    BaseRendererSceneUpdateTopicSettings,
    ImageConfig,
    ImageModeConfig,
    ImagePanel,
    Layout,
    LogPanel,
    ParametersPanel,
    PlotConfig,
    PlotPanel,
    PlotSeries,
    ServiceCallConfig,
    ServiceCallPanel,
    SplitContainer,
    SplitItem,
    StateTransitionsConfig,
    StateTransitionsPanel,
    StateTransitionsSeries,
    ThreeDeeCameraState,
    ThreeDeeConfig,
    ThreeDeePanel,
)

from nodes.recording.foxglove.schemas import SCENE_NAME
from nodes.recording.foxglove.typed_topics import TOPICS

JOINTS_SHOWN = 3
SEATS = ("planner", "vlm", "policy")
EMPTY_REQUEST = '{"token": ""}'


def layout(cameras: list[str]) -> str:
    """Return the layout file as JSON text, with a panel for each of at most two camera topics."""
    pictures: list[SplitItem] = [
        SplitItem(content=ImagePanel(title=topic, config=ImageConfig(image_mode=ImageModeConfig(image_topic=topic))))
        for topic in cameras[:2]
    ]
    space = ThreeDeePanel(
        title="Robot and room",
        config=ThreeDeeConfig(
            follow_tf="odometry",
            fixed_frame="odometry",
            camera_state=ThreeDeeCameraState(distance=3.2, phi=60.0, theta_offset=40.0, target_offset=(0.1, -0.3, 0.4)),
            layers={"grid": BaseRendererGridLayerSettings()},
            topics={
                topic: BaseRendererSceneUpdateTopicSettings(visible=topic != "scene/guard", show_outlines=False)
                for topic, schema in TOPICS.items()
                if schema == SCENE_NAME
            },
        ),
    )
    joints = PlotPanel(
        title="Joints",
        config=PlotConfig(
            paths=[
                PlotSeries(value=f"joints.joints[{n}].position", label=f"joint {n + 1}") for n in range(JOINTS_SHOWN)
            ]
        ),
    )
    guard = StateTransitionsPanel(
        title="Guard, and who holds which seat",
        config=StateTransitionsConfig(
            paths=[
                StateTransitionsSeries(value="guard/state.mode", label="mode"),
                *(StateTransitionsSeries(value=f'lease{{seat=="{seat}"}}.holder', label=seat) for seat in SEATS),
            ]
        ),
    )
    stops = [
        ServiceCallPanel(
            title=title, config=ServiceCallConfig(service_name=name, request_payload=EMPTY_REQUEST, button_text=title)
        )
        for name, title in (("stop", "Stop"), ("estop", "Emergency stop"))
    ]
    left = SplitContainer(
        direction="column",
        items=[
            SplitItem(proportion=2, content=space),
            SplitItem(content=SplitContainer(direction="row", items=pictures))
            if pictures
            else SplitItem(content=joints),
        ],
    )
    side = [LogPanel(), joints, guard, *stops, ParametersPanel(title="Parameters")]
    right = SplitContainer(direction="column", items=[SplitItem(content=panel) for panel in side])
    both = SplitContainer(direction="row", items=[SplitItem(proportion=2, content=left), SplitItem(content=right)])
    return str(Layout(content=both).to_json())
