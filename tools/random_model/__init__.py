"""Random checkpoints with the true shapes of the published models."""
