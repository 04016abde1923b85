"""What the runtime itself says on the bus: preemption epochs, seat leases, node health."""
