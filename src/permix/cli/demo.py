"""What ``permix demo`` does: the main job on data made here, whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from permix.cli.predict import show_fit
from permix.cli.votes import read_options
from permix.errors import DataError
from permix.estimators.registry import part

DRINKS = ("tea", "coffee", "milk", "juice", "cocoa", "water")


def run_demo(folder: Path, seed: int) -> None:
    """Make data, fit, compare with the truth, draw."""
    import pandas as pd

    from permix import datasets, plots
    from permix.data import Rankings, write_preflib
    from permix.partitions import adjusted_rand

    if folder.exists() and not folder.is_dir():
        raise DataError(f"{folder} is a file; give the name of a folder")
    folder.mkdir(parents=True, exist_ok=True)
    made = datasets.make_gaussian_clusters(400, 2, 5, separation=18.0, random_state=seed)
    points = pd.DataFrame(made.data, columns=["x", "y"])
    points.to_csv(folder / "points.csv", index=False)
    print("400 points from 5 groups; permix is told neither the number of groups nor their shape.\n")
    estimator = part("permix.dp_mixture.estimator:DPMixture")
    model = estimator(random_state=seed).fit(points)
    model.save(folder / "points.permix")
    show_fit(folder / "points.permix", as_json=False)
    agreement = adjusted_rand(model.labels_, np.asarray(made.labels))
    print(f"agreement with the truth (adjusted Rand index, 1 is perfect): {agreement:.3f}\n")

    orders = np.asarray(datasets.make_mallows_mixture(500, len(DRINKS), 1, random_state=seed).data)
    write_preflib(Rankings.from_orders(orders, items=DRINKS), folder / "votes.soc")
    votes = read_options(folder / "votes.soc", {})
    part("permix.consensus.command:show_consensus")(votes, "auto", None, as_json=False)

    files = ["points.csv", "points.permix", "votes.soc"]
    try:
        plots.save(model, folder / "points.png")
        files.append("points.png")
    except DataError as error:
        print(f"\nno picture: {error}")
    print(f"\nwritten to {folder}/: {', '.join(files)}")
    print(f"next: permix summary {folder / 'points.permix'}")


def run_example(name: str | None, folder: Path, force: bool, seed: int) -> None:
    """Write the files of an example and say what to ask of them; without a name, list the examples."""
    from permix.datasets.examples import EXAMPLES, example, write_example

    if name is None:
        width = max(map(len, EXAMPLES))
        for known, about in EXAMPLES.items():
            print(f"{known:{width}}  {about.question}")
        print("\npermix example NAME writes one to this folder.")
        return
    about = example(name)
    main, *others = write_example(name, folder, random_state=seed, force=force)
    print(f"{main}: {about.question}")
    for other in others:
        print(f"{other}: goes with it")
    print(f"drawn from {about.truth}\nnext: {about.command.replace('FILE', str(main))}")
