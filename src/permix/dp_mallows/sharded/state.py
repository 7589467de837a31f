"""The client's side of a chain over agents in shards: clusters, and how agents are placed among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from permix.data.labels import Array
from permix.data.shards.sharded import Sharded
from permix.dp_mallows.lists.clusters_jit import draw_some_decays
from permix.dp_mallows.lists.pair_counts_jit import ByPair
from permix.dp_mallows.lists.seating_jit import ListClusters
from permix.dp_mallows.moves import words_of
from permix.dp_mallows.sharded.work import Division, Edit, Look, Placing, Shape, add_looks, look
from permix.dp_mallows.state import MISFIT, ListModel, ListState
from permix.errors import DataError
from permix.kernels.streams import draw_key

# What draws keep of clusters, to be taken out again (see ``fit``); they differ in number between draws.
SIZES, CENTERS, THETA = "tree_sizes", "tree_centers", "tree_theta"


@dataclasses.dataclass(frozen=True)
class ShardedModel(ListModel):
    """Data and prior; ``lists`` are those of the agents on record alone, a random sample of all."""

    data: Sharded | None = None
    on_record: Array = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def n_agents(self) -> int:
        assert self.data is not None
        return self.data.n_agents

    @property
    def shape(self) -> Shape:
        """What workers need to know."""
        return Shape(self.n_agents, self.n_items, np.asarray(self.tables.skips, dtype=np.int64))


class ShardedState(ListState):
    """A partition of agents in shards with a center for each cluster.

    ``labels`` are those of the agents on record. Everything else that is known of agents is in ``seen``, what
    all shards say of ``placing``.
    """

    model: ShardedModel
    placing: Placing
    seen: Look

    def __init__(self, model: ShardedModel, chain: int) -> None:
        super().__init__(model)
        self.chain = chain
        self.candidates = np.empty(0, dtype=np.int64)  # agents asked about, beside those on record

    def make_clusters(self, capacity: int) -> ListClusters:
        """Return slots with counts of pairs, however many items there are: lists are not here."""
        slots = super().make_clusters(capacity)
        return slots._replace(pairs=np.zeros((capacity, *self.model.shape.pairs)))

    def source(self) -> ByPair:
        """Return what centers depend on."""
        return ByPair(self.clusters.pairs, np.full(self.n_clusters, -1, dtype=np.int32))

    def count_members(self) -> None:
        """Take what the shards have counted."""
        held, n = self.clusters, self.n_clusters
        held.sizes[:] = 0
        held.sizes[:n] = self.seen.sizes
        held.weights[:] = np.where(held.sizes > 0, held.sizes - self.model.discount, 0.0)
        held.pairs[:n] = self.seen.pairs
        self.labels[:] = self.seen.labels[: len(self.labels)]

    # Where agents are.

    def place(self, places: Array, theta: Array, shares: Array, key: Array, seated: Array) -> None:
        """Place all agents anew: given centers (items, clusters), decays (stages, clusters) and shares.

        ``seated`` stay where they are, one in each cluster; where nobody does, clusters that remain empty are
        left out, which is for the start of a chain.
        """
        while True:
            self._room_for(places)
            words = words_of(self, np.arange(len(shares)))
            log_shares = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
            theta = np.ascontiguousarray(theta)
            self.placing = Placing(words, theta, log_shares, key, seated, (), self.chain)
            found = self._look()
            kept = np.flatnonzero(found.sizes)
            if len(kept) == len(shares):
                break
            places, theta, shares, seated = places[:, kept], theta[:, kept], shares[kept], seated[kept]
            key = key + np.uint64(1)  # workers know placings by their keys
        self.clusters.theta[: self.n_clusters] = theta.T
        self._take(found)

    def _room_for(self, places: Array) -> None:
        self.n_clusters = places.shape[1]
        self.make_room(self.n_clusters + 1)
        self.clusters.places[:, : self.n_clusters] = places

    def split(self, first: int, division: Division | None, agent: int, places: Array, key: Array) -> Edit:
        """Divide a cluster, or let an agent leave it; ``places`` (items, 2) are the centers of its parts.

        Returns the edit to make.
        """
        new = self.n_clusters
        self.make_room(new + 2)
        self.clusters.places[:, [first, new]] = places
        self.n_clusters += 1
        return Edit(first, new, new, division, agent, key)

    def merge(self, first: int, second: int, places: Array, key: Array) -> Edit:
        """Put two clusters together; the last one takes the place of the second. Returns the edit to make."""
        last = self.n_clusters - 1
        self.clusters.places[:, first] = places
        self.clusters.places[:, second] = self.clusters.places[:, last]
        self.n_clusters -= 1
        return Edit(first, second, last, None, -1, key)

    def make(self, edits: Sequence[Edit]) -> None:
        """Have the shards make edits that clusters have gone through here."""
        self.placing = self.placing._replace(edits=(*self.placing.edits, *edits))
        self._take(self._look())

    def _look(self) -> Look:
        assert self.model.data is not None
        asked = np.concatenate([self.model.on_record, self.candidates])
        given = (self.model.shape, self.placing, asked)
        found: Look = self.model.data.map(look, given, add_looks)
        return found

    def _take(self, found: Look) -> None:
        self.seen = found
        self.refresh()

    @property
    def staying(self) -> Array:
        """A member of every cluster, drawn at random."""
        return np.asarray(self.seen.agents[0, :, 0])

    def draw_decays(self, rng: np.random.Generator) -> Array:
        """Draw decays given centers and members, (stages, clusters)."""
        theta = np.empty((self.model.n_stages, self.n_clusters))
        draw_some_decays(draw_key(rng), self.tables, self.clusters, np.arange(self.n_clusters), theta)
        return theta

    # What is reported.

    def record(self) -> dict[str, float | int | np.ndarray]:
        """One draw, with sizes, centers and decays; labels are those of the agents on record."""
        _, first = np.unique(self.labels, return_index=True)
        named = self.labels[np.sort(first)]  # in the order in which labels number them
        order = np.append(named, np.setdiff1d(np.arange(self.n_clusters), named))
        draw = super().record()
        draw[SIZES] = self.sizes_in_use[order]
        draw[CENTERS] = self.centers()[order].ravel()
        draw[THETA] = self.clusters.theta[order].ravel()
        return draw

    def progress(self) -> dict[str, float]:
        """Live numbers."""
        return {name: value for name, value in super().progress().items() if name != "moved"}

    # Files.

    def checkpoint(self) -> dict[str, np.ndarray]:
        """Everything that cannot be recomputed: who belongs where follows from how agents were placed."""
        held, placing = super().checkpoint(), self.placing
        del held["labels"]
        none = Division(
            np.zeros((self.model.n_items, 1), dtype=np.uint64),
            np.zeros((self.model.n_stages, 2)),
            0.0,
            (-1, -1),
            np.zeros(2, dtype=np.uint64),
        )
        divisions = [edit.division or none for edit in placing.edits]
        for name in ("words", "theta", "log_shares", "key", "seated"):
            held[f"placing_{name}"] = np.array(getattr(placing, name))
        splits = [[*edit[:3], edit.agent, edit.division is not None] for edit in placing.edits]
        held["edits"] = np.array(splits, dtype=np.int64).reshape(-1, 5)
        held["edit_keys"] = _stacked([edit.key for edit in placing.edits], none.key)
        held["edit_words"] = _stacked([each.words for each in divisions], none.words)
        held["edit_theta"] = _stacked([each.theta for each in divisions], none.theta)
        held["edit_odds"] = np.array([each.log_odds for each in divisions], dtype=np.float64)
        anchors = [np.array(each.anchors, dtype=np.int64) for each in divisions]
        held["edit_anchors"] = _stacked(anchors, np.array(none.anchors, dtype=np.int64))
        held["edit_division_keys"] = _stacked([each.key for each in divisions], none.key)
        return held

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take back what ``checkpoint`` gave, and have agents placed again."""
        self.placing = self._placing_of(arrays)
        self._room_for(np.asarray(arrays["places"]))
        if self.n_clusters != self.placing.n_clusters:
            raise DataError(MISFIT)
        self.seen = self._look()
        self._restore_clusters(arrays)

    def _placing_of(self, arrays: Mapping[str, np.ndarray]) -> Placing:
        """Rebuild how agents are placed; compiled code does not check, so this does."""
        words, theta, log_shares, key, seated = (
            np.ascontiguousarray(arrays[f"placing_{name}"])
            for name in ("words", "theta", "log_shares", "key", "seated")
        )
        n_items, n_stages, n = self.model.n_items, self.model.n_stages, len(log_shares)
        edits, edit_words = np.asarray(arrays["edits"]), np.ascontiguousarray(arrays["edit_words"])
        proper = (
            words.shape == (n_items, roomy_words(n))
            and theta.shape == (n_stages, n)
            and key.shape == (2,)
            and seated.shape == (n,)
            and edits.shape[1:] == (5,)
            and edit_words.shape == (len(edits), n_items, 1)
            and np.shape(arrays["edit_theta"]) == (len(edits), n_stages, 2)
            and all(_are_places(each, n_items) for each in (words, *edit_words))
            and bool(((edits[:, :3] >= 0) & (edits[:, :3] < n + len(edits))).all())
        )
        if not proper:
            raise DataError("the checkpoint's placing of agents is damaged")
        found = []
        for at, (first, second, last, agent, splits) in enumerate(edits.tolist()):
            division: Division | None = Division(
                edit_words[at],
                np.ascontiguousarray(arrays["edit_theta"][at]),
                float(arrays["edit_odds"][at]),
                tuple(int(agent) for agent in arrays["edit_anchors"][at]),  # type: ignore[arg-type]
                np.ascontiguousarray(arrays["edit_division_keys"][at]),
            )
            own_key = np.ascontiguousarray(arrays["edit_keys"][at])
            division = division if splits else None
            found.append(Edit(first, second, last, division, agent, own_key))
        return Placing(words, theta, log_shares, key, seated, tuple(found), self.chain)


def roomy_words(n_clusters: int) -> int:
    """Return how many words hold an item's places in so many centers."""
    return -(-n_clusters // 4)


def _are_places(words: Array, n_items: int) -> bool:
    places = words.view(np.int16)
    return bool(((places >= 0) & (places < n_items)).all())


def _stacked(arrays: list[Array], like: Array) -> Array:
    return np.stack(arrays) if arrays else np.empty((0, *like.shape), dtype=like.dtype)
