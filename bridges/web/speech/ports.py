"""`VoicePorts`: what a bridge says and hears whose pages people can speak at."""

from __future__ import annotations

from bridges.robot_ports import OPTIONAL
from nodes.msgs import MicrophoneState, RecogniserState, Sound, SoundSoFar, Speech
from runtime import RELIABLE, Node, Publisher, Subscription


class VoicePorts(Node):
    """Where nobody hears `microphone/speech`, its pages say so."""

    sound = Publisher(Sound, "microphone/speech", qos=RELIABLE)
    so_far = Publisher(SoundSoFar, "microphone/so_far")
    speaking = Publisher(Speech, "speech")
    recogniser = Subscription(RecogniserState, "recogniser", qos=OPTIONAL)
    microphone = Subscription(MicrophoneState, "microphone", qos=OPTIONAL)
