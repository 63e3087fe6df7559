"""The engine: from a batch of queries to an `Evaluation`."""
