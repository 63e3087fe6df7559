"""Run as a program: threads, and the forked workers of a `DataLoader`, judge at once. Prints nothing when all agree.

In a process of its own, since other libraries of the tests run threads that a fork does not survive.
"""

from __future__ import annotations

import threading

import torch

from fastrank.training.torch import RankingMetric

N = 16


def judged(seed: int) -> float:
    """One metric of drawn lists."""
    generator = torch.Generator().manual_seed(seed)
    scores, labels = torch.rand(500, 20, generator=generator), torch.randint(0, 3, (500, 20), generator=generator)
    metric = RankingMetric("nDCG@10", threads=2)
    metric.update(scores, labels)
    return float(metric.compute())


class Judging(torch.utils.data.Dataset):  # type: ignore[misc]
    """Each item is a metric."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, seed: int) -> float:
        return judged(seed)


if __name__ == "__main__":
    torch.set_num_threads(1)
    expected = [judged(seed) for seed in range(N)]  # the pool of this process has run before the fork
    found: dict[int, float] = {}

    def work(part: int) -> None:
        for seed in range(part, N, 4):
            found[seed] = judged(seed)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    loader = torch.utils.data.DataLoader(Judging(), batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    for thread in threads:
        thread.start()
    loaded = [value for batch in loader for value in batch.tolist()]
    for thread in threads:
        thread.join()
    assert loaded == expected, (loaded, expected)
    assert [found[seed] for seed in range(N)] == expected
