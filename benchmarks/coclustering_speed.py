"""One iteration of co-clusterings of MovieLens: 100k and 1M ratings, and the same sweeps in NumPy.

An iteration is what the samplers do between two draws by default: a sweep of Gibbs over all rows and all
columns, and the moves that make them mix (splits and merges, or changes of cuts). The reference is the sweep
alone, in NumPy from the same state (``benchmarks/peers/naive_coclustering.py``), on some rows and columns,
multiplied up. Rows of 1M against 100k say how cost grows with ten times as many ratings.

``python -m benchmarks.coclustering_speed --sizes 100k``. Without the MovieLens data, ratings of the same
number and shape are drawn.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.naive_coclustering import (
    NaiveLines,
    bases_histogram,
    cells_histogram,
    consensus_sweep,
    labels_histogram,
)
from benchmarks.timing import timed

MODELS = ("dp", "mondrian", "dp ensemble", "mondrian ensemble", "mondrian ensemble, all cells")
N_WARM_UP = 100  # iterations, from which the chain is where it will stay
N_TIMED = 20
N_NAIVE = 40  # rows, and columns, that the reference visits at most,
LONGEST_NAIVE = 5.0  # and for so many seconds at most
N_BASES = 5
CONCENTRATION, BUDGET = 20.0, 1.0  # the paper's
SHAPES = {"100k": (943, 1682, 100_000), "1m": (6040, 3449, 999_714)}  # users, films, ratings


def ratings(size: str) -> tuple[str, Any]:
    """MovieLens, or as many ratings of as many films in blocks drawn at random, and which of the two."""
    from permix.datasets import load_movielens
    from permix.datasets.fetch import DataNotFound

    try:
        return f"MovieLens {size}", load_movielens(size, download=False).data  # type: ignore[arg-type]
    except DataNotFound:
        return f"synthetic, like MovieLens {size}", synthetic_ratings(*SHAPES[size])


def synthetic_ratings(n_rows: int, n_columns: int, n_ratings: int) -> Any:
    """Draw ratings 1-5 from blocks of 15 × 15 clusters; users and films are rated unequally often."""
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(0)
    often = [rng.permutation(1.0 / (10.0 + np.arange(n))) for n in (n_rows, n_columns)]
    draws = [rng.choice(len(w), 3 * n_ratings, p=w / w.sum()) for w in often]
    places = np.unique(draws[0].astype(np.int64) * n_columns + draws[1])
    rows, columns = np.divmod(np.sort(rng.permutation(places)[:n_ratings]), n_columns)
    levels = rng.dirichlet(np.ones(5), size=(15, 15))
    labels = [rng.integers(15, size=n) for n in (n_rows, n_columns)]
    shares = levels[labels[0][rows], labels[1][columns]].cumsum(axis=1)
    values = 1 + (rng.random(len(rows))[:, None] > shares[:, :4]).sum(axis=1)
    return csr_matrix((values, (rows, columns)), shape=(n_rows, n_columns))


def encoded(matrix: Any) -> Any:
    """Ratings as the samplers read them."""
    from permix.cocluster.cells.encoded_matrix import encode_matrix
    from permix.cocluster.cells.families import CategoricalCells
    from permix.data.cells import Cells

    cells = Cells.coerce(matrix)
    family = CategoricalCells().resolve(cells.values)
    return encode_matrix(family, cells.rows, cells.columns, cells.values, cells.shape)


class Chain:
    """A sampler after its warm-up."""

    def __init__(self, state: Any, move: Any, seed: int = 0) -> None:
        self.state, self.move = state, move
        self.rng = np.random.default_rng(seed)

    def iterate(self, n: int) -> None:
        """Take n iterations."""
        for _ in range(n):
            self.move.step(self.rng, self.state)

    def seconds(self) -> float:
        """Of one iteration."""
        return timed(self.iterate, N_TIMED)[0] / N_TIMED


def grid_chain(matrix: Any, seed: int) -> Chain:
    """DPCC."""
    from permix.cocluster.grid.moves import grid_moves
    from permix.cocluster.grid.state import GridState, seat_all_lines
    from permix.partitions import DirichletProcess

    prior = DirichletProcess(CONCENTRATION)
    state = GridState(matrix, prior, prior)
    chain = Chain(state, grid_moves(matrix.n_rows, matrix.n_columns), seed)
    seat_all_lines(chain.rng, state)
    return chain


def mondrian_chain(data: Any, seed: int) -> Chain:
    """MPCC, or MPCCE where data are bases."""
    from permix.cocluster.mondrian.moves import mondrian_moves
    from permix.cocluster.mondrian.state import MondrianState

    return Chain(MondrianState(data, BUDGET, np.random.default_rng(seed)), mondrian_moves(), seed)


def consensus_chain(bases: Any, seed: int) -> Chain:
    """DPCCE."""
    from permix.cocluster.grid.ensemble_state import EnsembleGridState, seat_consensus
    from permix.cocluster.grid.moves import grid_moves
    from permix.partitions import DirichletProcess

    prior = DirichletProcess(CONCENTRATION)
    state = EnsembleGridState(bases.row_table(), bases.column_table(), prior, prior)
    chain = Chain(state, grid_moves(bases.n_rows, bases.n_columns), seed)
    seat_consensus(chain.rng, state)
    return chain


def base_data(bases: Any, matrix: Any) -> Any:
    """Labels of the filled cells as the Mondrian sampler reads them; of all cells without a matrix."""
    from permix.cocluster.bases import to_lines
    from permix.cocluster.cells.blocks_jit import count_prior
    from permix.cocluster.mondrian.state import MondrianData

    n_cells = bases.n_rows * bases.n_columns if matrix is None else matrix.n_cells
    return MondrianData(
        count_prior(1.0, bases.n_blocks, n_cells),
        *to_lines(bases, matrix),
        n_rows=bases.n_rows,
        n_columns=bases.n_columns,
        n_slots=int(bases.n_blocks.sum()),
        sums_dtype=np.int64,
    )


def naive_seconds(sides: Sequence[tuple[int, Any]]) -> float:
    """Seconds of a whole sweep; sides are (number of lines, sweep over given lines)."""
    total = 0.0
    for n, sweep in sides:
        spent, visited = 0.0, 0
        for line in np.linspace(0, n - 1, min(n, N_NAIVE)).astype(int):
            spent += timed(sweep, [line])[0]
            visited += 1
            if spent > LONGEST_NAIVE:
                break
        total += spent * n / visited
    return total


def naive_blocks(
    state: Any, histograms: Sequence[Any], labels: Sequence[np.ndarray], table: np.ndarray, groups: np.ndarray
) -> float:
    """Seconds of a sweep over rows and columns of blocks; the reference must see the same likelihood."""
    rng = np.random.default_rng(0)
    sides = []
    for histogram, classes, blocks in zip(histograms, labels, (table, table.T), strict=True):
        naive = NaiveLines(histogram, classes, blocks, lambda sizes: np.log(sizes + 1.0), 1.0, groups)
        found = float(naive.log_evidence(naive.counts).sum())
        if abs(found / state.log_likelihood() - 1.0) > 1e-9:
            raise AssertionError(f"the reference has log likelihood {found}, not {state.log_likelihood()}")
        sides.append((len(classes), lambda lines, naive=naive: naive.sweep(rng, lines)))
    return naive_seconds(sides)


def naive_matrix(matrix: Any, state: Any, mondrian: bool) -> float:
    """Seconds of a sweep over a matrix in blocks."""
    draw = state.record()
    rows, columns = draw["row_labels"], draw["column_labels"]
    shape = (draw["n_row_groups"], draw["n_column_groups"])
    table = state.partition().table() if mondrian else np.arange(np.prod(shape)).reshape(shape)
    n_levels = matrix.family.n_slots
    histograms = [
        cells_histogram(*matrix.by_row, columns, n_levels, table.shape[1]),
        cells_histogram(*matrix.by_column, rows, n_levels, table.shape[0]),
    ]
    return naive_blocks(state, histograms, (rows, columns), table, np.array([n_levels]))


def naive_labels(bases: Any, state: Any) -> float:
    """Seconds of a sweep over the block ids of the filled cells in all bases."""
    draw = state.record()
    rows, columns = draw["row_labels"], draw["column_labels"]
    table = state.partition().table()
    n_slots = int(bases.n_blocks.sum())
    histograms = [
        labels_histogram(*state.data.by_row, columns, n_slots, table.shape[1]),
        labels_histogram(*state.data.by_column, rows, n_slots, table.shape[0]),
    ]
    return naive_blocks(state, histograms, (rows, columns), table, bases.n_blocks)


def naive_bases(bases: Any, state: Any) -> float:
    """Seconds of a sweep over the block ids of all cells in all bases."""
    draw = state.record()
    rows, columns = draw["row_labels"], draw["column_labels"]
    table = state.partition().table()
    ids = [
        of_base[row_classes][:, column_classes]
        for of_base, row_classes, column_classes in zip(
            bases.tables, bases.row_classes, bases.column_classes, strict=True
        )
    ]
    histograms = [
        bases_histogram(ids, columns, table.shape[1]),
        bases_histogram([of_base.T for of_base in ids], rows, table.shape[0]),
    ]
    return naive_blocks(state, histograms, (rows, columns), table, bases.n_blocks)


def naive_consensus(bases: Any, state: Any) -> float:
    """Seconds of a sweep over the labels of rows and of columns."""
    rng = np.random.default_rng(0)
    sides = []
    for table, mixture in ((bases.row_table(), state.rows), (bases.column_table(), state.columns)):
        labels = mixture.labels.copy()
        sides.append(
            (
                len(table),
                lambda lines, labels=labels, table=table: consensus_sweep(
                    rng, labels, table, 1.0, CONCENTRATION, lines
                ),
            )
        )
    return naive_seconds(sides)


def bases_of(chains: Sequence[Chain], mondrian: bool) -> Any:
    """Bases from where chains are now."""
    from permix.cocluster.bases import as_bases

    made: list[Any] = []
    for chain in chains:
        draw = chain.state.record()
        rows, columns = draw["row_labels"], draw["column_labels"]
        if mondrian:
            table = chain.state.partition().table()
            made.append(SimpleNamespace(row_classes=rows, column_classes=columns, table=table))
        else:
            made.append((rows, columns))
    return as_bases(made)


class Timed(NamedTuple):
    """What one iteration takes, and how to time the reference."""

    size: str
    what: str
    model: str
    seconds: float
    reference: Callable[[], float]
    note: str


def timings(size: str, models: Sequence[str]) -> Iterator[Timed]:
    """Time all models on ratings of one size."""
    from permix.cocluster.mondrian.state import MondrianData

    name, data_set = ratings(size)
    matrix = encoded(data_set)
    for prior in ("dp", "mondrian"):
        wanted = [model for model in models if model.split()[0] == prior]
        mondrian = prior == "mondrian"
        if not wanted:
            continue
        data = MondrianData.of(matrix) if mondrian else None
        chains = [
            mondrian_chain(data, seed) if mondrian else grid_chain(matrix, seed)
            for seed in range(1 if wanted == [prior] else N_BASES)
        ]
        for chain in chains:
            chain.iterate(N_WARM_UP)
        in_numpy: Callable[[], float]
        if prior in wanted:
            in_numpy = partial(naive_matrix, matrix, chains[0].state, mondrian)
            yield timing(size, name, prior, chains[0], in_numpy)
        for model in wanted:
            if model == prior:
                continue
            bases = bases_of(chains, mondrian)
            if mondrian:
                filled = model == "mondrian ensemble"
                ensemble = mondrian_chain(base_data(bases, matrix if filled else None), 0)
                in_numpy = partial(naive_labels if filled else naive_bases, bases, ensemble.state)
            else:
                ensemble = consensus_chain(bases, 0)
                in_numpy = partial(naive_consensus, bases, ensemble.state)
            ensemble.iterate(N_WARM_UP)
            yield timing(size, name, model, ensemble, in_numpy)


def timing(size: str, name: str, model: str, chain: Chain, reference: Callable[[], float]) -> Timed:
    """Time a chain that is warm."""
    seconds = chain.seconds()
    return Timed(
        size, f"{name}, {model}", model, seconds, reference, f"{chain.state.record()['n_blocks']} blocks"
    )


def run(
    sizes: Sequence[str] = ("100k", "1m"), models: Sequence[str] = MODELS, naive: bool = True
) -> list[dict[str, Any]]:
    """Time every model on every size, and compare sizes."""
    found = [entry for size in sizes for entry in timings(size, models)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    rows: list[dict[str, Any]] = []
    for entry in found:
        reference = entry.reference() if naive else float("nan")
        rows.append(
            row(
                entry.what,
                entry.seconds,
                reference,
                reference / entry.seconds,
                f"seconds an iteration; {entry.note}",
            )
        )
    seconds = {(entry.size, entry.model): entry.seconds for entry in found}
    for model in models:
        if {"100k", "1m"} <= set(sizes):
            small, large = seconds["100k", model], seconds["1m", model]
            rows.append(row(f"1M over 100k, {model}", large, small, large / small, "seconds an iteration"))
    rows.append(row("memory", peak / 2**30, 1.0, 2**30 / peak, "GiB at most, without the reference"))
    return rows


def row(what: str, ours: float, reference: float, ratio: float, note: str) -> dict[str, Any]:
    """One line of the table."""
    return {"what": what, "ours": ours, "reference": reference, "ratio": ratio, "note": note}


def main() -> None:
    """Read options and print rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", default=("100k", "1m"), choices=("100k", "1m"))
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--no-reference", action="store_true")
    options = parser.parse_args()
    for row in run(options.sizes, options.models, not options.no_reference):
        print(row)


if __name__ == "__main__":
    main()
