"""Arms, leaders and cameras of LeRobot and its plug-ins: behind the guard, on the policy's seat, and as cameras."""
