"""What ``permix update`` does: a fitted model takes in new data, file by file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import typer

from permix.cli.inspect import check_targets
from permix.cli.output import count_of, print_json
from permix.cli.run import speaking_options
from permix.cli.votes import read_options
from permix.errors import DataError
from permix.estimators.registry import part


def run_update(fit: Path, new: Path, output: Path, values: Mapping[str, Any]) -> None:
    """Take in new files one after another, and write the fit after each."""
    from permix.estimators.archive import read_about, read_model, write_model

    files = batches(new)
    check_targets([output], [fit, *files], values["force"])
    model, found = read_model(fit)
    if not model.update:
        raise DataError(f"{fit} holds {model.named}, which cannot take in new data; fit all data together")
    follow, about = part(model.update), read_about(fit)
    seeds = np.random.SeedSequence(values["seed"] or 0).spawn(len(files))
    said = []
    with speaking_options({"n_particles": "--particles", "same_agents": "--new-agents"}):
        for file, seed in zip(files, seeds, strict=True):
            votes = _read(file, values, found)
            same = values["same_agents"] is not False
            found = follow(found, votes, same, values["particles"] or 200, values["moves"] or 2, seed)
            write_model(found, output, about)
            said.append(_report(file, found.followed[-1]))
            if not values["json"]:
                print(_sentence(said[-1]), file=sys.stderr)
    if values["json"]:
        print_json({"file": str(output), "batches": said})
    else:
        print(f"{output}: {count_of(int(found.n_agents), 'agent')} in all; see permix summary {output}")


def batches(new: Path) -> list[Path]:
    """Return the files to take in, by their names."""
    if not new.is_dir():
        return [new]
    files = sorted(path for path in new.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise typer.BadParameter(f"there is no file in {new}")
    return files


def _read(file: Path, values: Mapping[str, Any], found: Any) -> Any:
    from permix.data.io.text_files import TABLES, plain_suffix
    from permix.data.more_items import over_more_items

    soft = getattr(found.settings, "errors", None) is not None
    on_cycle = values.get("on_cycle") or ("keep" if soft else None)
    votes = read_options(file, {**values, "on_cycle": on_cycle}).read()
    if plain_suffix(file) in TABLES and set(votes.items) < set(found.items):
        votes = over_more_items(votes, found.items)
    return votes


def _report(file: Path, step: Any) -> dict[str, Any]:
    """Return what became of one file, as plain values."""
    evidence = np.array(step.log_evidence)
    return {
        "file": str(file),
        "new_agents": step.new_agents,
        "changed_agents": step.changed_agents,
        "draws": step.n_particles,
        "effective_size": round(min(step.effective_size), 1),
        "log_evidence": round(float(np.logaddexp.reduce(evidence) - np.log(len(evidence))), 3),
    }


def _sentence(said: Mapping[str, Any]) -> str:
    came = count_of(said["new_agents"], "new agent")
    if said["changed_agents"]:
        came += f", {count_of(said['changed_agents'], 'known agent')} with more answers"
    return (
        f"{said['file']}: {came}; "
        f"{said['draws']} draws of a chain were worth {said['effective_size']:g} at least; "
        f"ln P(these data | those before) = {said['log_evidence']:g}"
    )
