"""The `[hosts]` of a launch file: addresses, who listens for whom, questions to a service there; not the gateways."""
