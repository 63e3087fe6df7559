"""Other programs asked for the same numbers: differential runs on random and on given judgements, each difference with its reason."""
