"""From a batch of queries to where its documents stand: `JudgedRanks`."""
