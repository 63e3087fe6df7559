"""The part of torchmetrics that `RankingMetric` stands on, for where torchmetrics is not installed: states, their sync, and forward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

try:
    import torch
    from torch import distributed
except ImportError:
    needs = "fastrank.training.torch needs torch, which is not installed: pip install 'fastrank-metrics[torch]'."
    raise ImportError(needs) from None


class StateMetric(torch.nn.Module):  # type: ignore[misc]  # torch is not looked into by the type checker
    """A module of named states that are added up (tensors) or put end to end (lists) over processes when `compute` is called."""

    full_state_update = False

    def __init__(self, *, process_group: Any = None, sync_on_compute: bool = True) -> None:
        super().__init__()
        self.process_group, self.sync_on_compute = process_group, sync_on_compute
        self._defaults: dict[str, Any] = {}

    def __init_subclass__(cls) -> None:
        setattr(cls, "compute", _synced(cls.compute))  # noqa: B010  (mypy forbids to assign a method)

    @property
    def device(self) -> Any:
        """Where the states are."""
        return next(self.buffers()).device

    def add_state(self, name: str, default: Any, dist_reduce_fx: str) -> None:
        """Make a state: a tensor is added over processes, an empty list takes tensors that are put end to end."""
        self._defaults[name] = default
        if isinstance(default, list):
            setattr(self, name, [])
        else:
            self.register_buffer(name, default.clone(), persistent=False)

    def reset(self) -> None:
        """Begin anew."""
        for name, default in self._defaults.items():
            setattr(self, name, [] if isinstance(default, list) else default.to(self.device, copy=True))

    def compute(self) -> Any:
        """What the states say."""
        raise NotImplementedError

    def update(self, *data: Any, **named: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def forward(self, *data: Any, **named: Any) -> Any:
        """Add a batch and return the value of this batch alone, in this process."""
        before = {name: getattr(self, name) for name in self._defaults}
        self.reset()
        self.update(*data, **named)
        value = type(self).compute.__wrapped__(self)  # type: ignore[attr-defined]  # not synced
        for name, earlier in before.items():
            setattr(self, name, earlier + getattr(self, name))
        return value

    def sync(self) -> None:
        """Bring the states of all processes together in each; `compute` does, and puts its own back afterwards."""
        for name in self._defaults:
            state = getattr(self, name)
            if isinstance(state, list):
                setattr(self, name, [torch.cat(_gathered(torch.cat(state), self.process_group))])
            else:
                added = state.clone()
                distributed.all_reduce(added, group=self.process_group)
                setattr(self, name, added)


def _synced(compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A `compute` that sees the states of all processes; afterwards each has its own again."""

    @functools.wraps(compute)
    def computed(self: Any) -> Any:
        if not (self.sync_on_compute and distributed.is_available() and distributed.is_initialized()):
            return compute(self)
        own = {name: getattr(self, name) for name in self._defaults}
        self.sync()
        try:
            return compute(self)
        finally:
            for name, state in own.items():
                setattr(self, name, state)

    return computed


def _gathered(rows: Any, group: Any) -> list[Any]:
    """The rows of every process, of which each may have another number."""
    n_processes = distributed.get_world_size(group)
    counts = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(n_processes)]
    distributed.all_gather(counts, torch.tensor([len(rows)], device=rows.device), group=group)
    most = int(max(counts))
    filled = torch.zeros((most, *rows.shape[1:]), dtype=rows.dtype, device=rows.device)
    filled[: len(rows)] = rows
    parts = [torch.empty_like(filled) for _ in range(n_processes)]
    distributed.all_gather(parts, filled, group=group)
    return [part[: int(count)] for part, count in zip(parts, counts, strict=True)]
