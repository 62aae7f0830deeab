"""Turns checkpoints of sparse-attention language models into folders that Switchyard serves."""

__version__ = "0.1.0"
