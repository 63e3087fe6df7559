"""The study of NDCG: four discounts, three rankers, and what theory says of them. ``python -m benchmarks.ndcg_theory`` repeats it."""
