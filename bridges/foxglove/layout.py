"""A layout for Foxglove's viewer: cameras, the scene in space, joints, the guard's mode, the conversation."""

from __future__ import annotations

from foxglove.layouts import (
    ImageConfig,
    ImageModeConfig,
    ImagePanel,
    Layout,
    LogPanel,
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
    ThreeDeeConfig,
    ThreeDeePanel,
)

JOINTS_SHOWN = 3


def layout(cameras: list[str]) -> str:
    """The layout file as JSON text, with a panel for each of at most two camera topics."""
    pictures: list[SplitItem] = [
        SplitItem(content=ImagePanel(title=topic, config=ImageConfig(image_mode=ImageModeConfig(image_topic=topic))))
        for topic in cameras[:2]
    ]
    space = ThreeDeePanel(title="Robot", config=ThreeDeeConfig(follow_tf="base", fixed_frame="odometry"))
    joints = PlotPanel(
        title="Joints",
        config=PlotConfig(
            paths=[
                PlotSeries(value=f"joints.joints[{n}].position", label=f"joint {n + 1}") for n in range(JOINTS_SHOWN)
            ]
        ),
    )
    guard = StateTransitionsPanel(
        title="Guard",
        config=StateTransitionsConfig(paths=[StateTransitionsSeries(value="guard/state.mode", label="mode")]),
    )
    stop = ServiceCallPanel(title="Emergency stop", config=ServiceCallConfig(service_name="estop"))
    left = SplitContainer(direction="column", items=[*pictures, SplitItem(content=space)])
    right = SplitContainer(
        direction="column", items=[SplitItem(content=panel) for panel in (LogPanel(), joints, guard, stop)]
    )
    both = SplitContainer(direction="row", items=[SplitItem(proportion=2, content=left), SplitItem(content=right)])
    return str(Layout(content=both).to_json())
