"""A run on disk, complete at every moment.

::

    <store>/manifest.json          format, version, settings, seed, fingerprint
    <store>/lock                   held by the process that runs the chains
    <store>/chain-0/draws-000000.npz, draws-000001.npz, ...
    <store>/chain-0/state.npz      snapshot, and how many blocks of draws belong to it

Every file is written under a temporary name and renamed. A block of draws is written before the
state that counts it, so a kill in between leaves a block nobody counts, which the resumed chain
overwrites. Both kinds of file are permix archives (see :mod:`permix.files`) and open with
``numpy.load`` too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from permix.errors import Argument, DataError, FileFormatError, Wording
from permix.files import atomic_writer, check_version, parse_json, read_archive, write_archive
from permix.sampling.draws import Block, Tally, length, on_disk
from permix.sampling.lock import locked
from permix.sampling.protocol import Array

FORMAT = "permix-chains"
VERSION = 1
# A store is the user's own; its blocks may be as large as the draws that fit into memory. (That no file
# unpacks to more than it can hold is checked here too.)
_MAX_BYTES = 2**45


class Snapshot(NamedTuple):
    """Everything a chain needs to go on from an iteration that is a multiple of ``REFRESH``."""

    iteration: int
    generator: dict[str, Any]
    arrays: dict[str, Array]
    tally: Tally


class Saved(NamedTuple):
    """What a store holds of one chain: where to go on, all draws, and the totals that go with them."""

    snapshot: Snapshot
    blocks: list[Block]
    tally: Tally
    seconds: float


class ChainFolder:
    """The folder of one chain."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._n_blocks = 0
        self._n_draws = 0

    def load(self) -> Saved | None:
        """Read the chain, or None where nothing was written yet; refuse files that are damaged or missing."""
        self._path.mkdir(exist_ok=True)
        for leftover in self._path.glob(".*.tmp"):
            leftover.unlink()
        path = self._path / "state.npz"
        if not path.exists():
            return None
        try:
            return self._load(path)
        except (FileFormatError, FileNotFoundError) as error:
            raise FileFormatError(
                f"{error} This file of the store cannot be used. Restore it from a copy, or delete the "
                f"folder {self._path} to run this chain again from its beginning (it gives the same draws).",
                getattr(error, "path", None) or getattr(error, "filename", None),
            ) from error

    def _load(self, path: Path) -> Saved:
        manifest, arrays = read_archive(path, kind="chain-state", max_bytes=_MAX_BYTES)
        try:
            n_blocks, n_draws, iteration = (int(manifest[k]) for k in ("n_blocks", "n_draws", "iteration"))
            before = _tally(manifest["snapshot_tally"])
            snapshot = Snapshot(iteration, manifest["generator"], arrays, before)
            tally, seconds = _tally(manifest["tally"]), float(manifest["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{path}: the state is incomplete ({error!r}).", path) from error
        blocks: list[Block] = []
        for index in range(n_blocks):
            blocks.append(on_disk(self._read_block(self._block_path(index), sum(map(length, blocks)))))
        if sum(map(length, blocks)) != n_draws:
            raise FileFormatError(f"{path}: counts {n_draws} draws, but the blocks hold others.", path)
        self._n_blocks, self._n_draws = n_blocks, n_draws
        return Saved(snapshot, blocks, tally, seconds)

    def _read_block(self, path: Path, first_draw: int) -> Block:
        manifest, block = read_archive(path, kind="chain-draws", max_bytes=_MAX_BYTES)
        if manifest.get("first_draw") != first_draw:
            raise FileFormatError(f"{path}: it does not begin at draw {first_draw}, as it should.", path)
        if len({array.shape[:1] for array in block.values()} - {()}) != 1:
            raise FileFormatError(f"{path}: its arrays differ in length.", path)
        return block

    def write(self, block: Block | None, snapshot: Snapshot, *, tally: Tally, seconds: float) -> None:
        """Add a block of draws and put ``snapshot`` in the place of the last one.

        Where that fails, on a full disk, say, what the store held before still stands.
        """
        n_blocks, n_draws = self._n_blocks, self._n_draws
        if block is not None:
            about = {"kind": "chain-draws", "first_draw": n_draws}
            write_archive(self._block_path(n_blocks), about, block, max_bytes=_MAX_BYTES)
            n_blocks, n_draws = n_blocks + 1, n_draws + length(block)
        manifest = {
            "kind": "chain-state",
            "iteration": snapshot.iteration,
            "generator": snapshot.generator,
            "n_blocks": n_blocks,
            "n_draws": n_draws,
            "snapshot_tally": snapshot.tally,
            "tally": tally,
            "seconds": seconds,
        }
        write_archive(self._path / "state.npz", manifest, snapshot.arrays, max_bytes=_MAX_BYTES)
        self._n_blocks, self._n_draws = n_blocks, n_draws

    def _block_path(self, index: int) -> Path:
        return self._path / f"draws-{index:06d}.npz"


def _tally(value: Any) -> Tally:
    return {str(name): [int(proposed), int(accepted)] for name, (proposed, accepted) in value.items()}


@contextmanager
def open_store(
    path: str | os.PathLike[str],
    settings: Mapping[str, Any],
    seed: Mapping[str, Any] | None,
    new_seed: Mapping[str, Any],
    fingerprint: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Open the folder of a run, or begin one with ``new_seed``, and hold it for this process; give its seed.

    ``settings`` may not change when a run is continued; without a ``seed`` that of the store counts.
    ``fingerprint`` identifies model and data.
    """
    from permix import __version__

    folder = Path(path)
    wanted = {"settings": dict(settings), "fingerprint": dict(fingerprint), "seed": dict(seed or new_seed)}
    try:
        wanted = json.loads(json.dumps(wanted, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise DataError(f"the fingerprint of a run must hold what JSON holds: {error}") from error
    _make_folder(folder)
    with locked(folder / "lock", f"the store {folder}"):
        manifest_path = folder / "manifest.json"
        if manifest_path.exists():
            found = _read_manifest(manifest_path)
            if seed is None:
                wanted["seed"] = found["seed"]
            _refuse_differences(folder, found, wanted)
        else:
            manifest = {"format": FORMAT, "version": VERSION, "permix": __version__, **wanted}
            with atomic_writer(manifest_path) as handle:
                handle.write(json.dumps(manifest, ensure_ascii=False, indent=1).encode("utf-8"))
        yield wanted["seed"]


def _make_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        way_out = Wording("give store= the name of a folder.", "move it, or give another --output.")
        raise DataError(f"{folder} is a file, and chains are kept in a folder; ", way_out)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "manifest.json").exists():
        strange = sorted(p.name for p in folder.iterdir() if p.name != "lock" and p.suffix != ".tmp")
        if strange:
            raise DataError(
                f"the folder {folder} holds other files ({', '.join(strange[:3])}) and no permix store; "
                "give a new or empty folder."
            )


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = parse_json(path.read_bytes())
        check_version(manifest, FORMAT, VERSION)
        for key in ("settings", "fingerprint", "seed"):
            if not isinstance(manifest.get(key), dict):
                raise FileFormatError(f"{key!r} is missing.")
    except FileFormatError as error:
        raise FileFormatError(
            f"{path}: {error} Restore this file from a copy, or choose another folder.", path
        ) from error
    return manifest


def _refuse_differences(folder: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    differences: list[tuple[str | Argument, ...]] = []
    for part in ("settings", "seed", "fingerprint"):
        there, here = found[part], wanted[part]
        for key in dict.fromkeys([*there, *here]):
            if there.get(key) != here.get(key):
                name = "random_state" if (part, key) == ("seed", "entropy") else key
                differences.append(("; ", *_difference(name, part, there.get(key), here.get(key))))
    if differences:
        said = [text for difference in differences for text in difference][1:]
        raise DataError(
            f"the store {folder} belongs to another run: ",
            *said,
            ". Choose another folder, or delete this one to begin anew.",
        )


def _difference(name: str, part: str, there: object, here: object) -> tuple[str | Argument, ...]:
    """Say both values where people can read them; digests and long descriptions are just said to differ."""
    texts = [json.dumps(value, ensure_ascii=False) for value in (there, here)]
    if max(map(len, texts)) > 60:
        return (f"the {name} {'are' if name == 'data' else 'is'} not the same",)
    return name if part == "fingerprint" else Argument(name), f" was {texts[0]} and is now {texts[1]}"
