"""An arm of four joints: its limits, its class, a policy that moves it."""
