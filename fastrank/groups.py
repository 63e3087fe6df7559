"""`Groups`: judgements by subtopic or by judge, side arrays of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Groups:
    """Judgements of queries in groups: the subtopics of a query, or its judges.

    Query q has the groups offsets[q] ... offsets[q + 1] - 1 and the documents document_offsets[q] ... document_offsets[q + 1] - 1, by
    falling id. row[d] is the row of the batch in which document d was retrieved, -1 where it was not. Group g has the judgements
    starts[g] ... starts[g + 1] - 1, by part and document: a document and its label. Labels are compared within a part of a group.
    """

    offsets: np.ndarray
    document_offsets: np.ndarray
    row: np.ndarray
    starts: np.ndarray
    document: np.ndarray
    part: np.ndarray
    label: np.ndarray

    @property
    def n_queries(self) -> int:
        """Queries; each has a group."""
        return len(self.offsets) - 1

    @property
    def query(self) -> np.ndarray:
        """The query of each group."""
        return np.repeat(np.arange(self.n_queries), np.diff(self.offsets))

    @property
    def group(self) -> np.ndarray:
        """The group of each judgement."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def take(self, queries: np.ndarray) -> Groups:
        """The groups of some queries, in their order."""
        groups, offsets = _slices(self.offsets, queries)
        documents, document_offsets = _slices(self.document_offsets, queries)
        judgements, starts = _slices(self.starts, groups)
        # Documents keep their distance from the first of their query.
        moved = np.repeat(document_offsets[:-1] - self.document_offsets[queries], starts[offsets[1:]] - starts[offsets[:-1]])
        return Groups(
            offsets,
            document_offsets,
            self.row[documents],
            starts,
            self.document[judgements] + moved,
            self.part[judgements],
            self.label[judgements],
        )

    def block(self, first: int, last: int, base: int) -> Groups:
        """The groups of queries first ... last - 1, whose rows begin at `base`."""
        g, h = self.offsets[first], self.offsets[last]
        d, e = self.document_offsets[first], self.document_offsets[last]
        j, k = self.starts[g], self.starts[h]
        row = self.row[d:e]
        return Groups(
            self.offsets[first : last + 1] - g,
            self.document_offsets[first : last + 1] - d,
            np.where(row < 0, -1, row - base),
            self.starts[g : h + 1] - j,
            self.document[j:k] - d,
            self.part[j:k],
            self.label[j:k],
        )


def _slices(offsets: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of some slices, one after the other, and their own offsets."""
    sizes = offsets[chosen + 1] - offsets[chosen]
    own = np.append(0, np.cumsum(sizes))
    return np.repeat(offsets[chosen] - own[:-1], sizes) + np.arange(own[-1]), own
