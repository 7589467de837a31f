"""A million ballots: how long reading them takes, and how much memory.

``python -m benchmarks.cast_votes`` makes two elections in a temporary folder and reads each in a process of
its own: cast vote records in Dominion's form (1,000 files of 1,000 ballots with 16 contests, 4 GB), and a
table with a column for each rank. ``--ballots 100000`` makes smaller ones, ``--folder`` keeps them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

N_CONTESTS, N_CANDIDATES, N_RANKS = 16, 5, 4


def _contest(number: int, order: list[int]) -> str:
    marks = [
        {
            "CandidateId": 100 * number + candidate,
            "ManifestationId": 3400 + candidate,
            "PartyId": 15,
            "Rank": rank,
            "MarkDensity": 100,
            "IsAmbiguous": False,
            "IsVote": True,
            "OutstackConditionIds": [],
        }
        for rank, candidate in enumerate(order, start=1)
    ]
    about = {"Id": number, "ManifestationId": 400 + number, "Undervotes": 0, "Overvotes": 0}
    return json.dumps({**about, "OutstackConditionIds": [14], "Marks": marks}, separators=(",", ":"))


def make_dominion(folder: Path, n_files: int, n_per_file: int, seed: int = 0) -> Path:
    """Write an export: contest 1 has ranks, the others one mark each."""
    folder.mkdir(parents=True, exist_ok=True)
    contests = [
        {"Id": k, "Description": f"Contest {k}", "NumOfRanks": N_RANKS if k == 1 else 0, "VoteFor": 1}
        for k in range(1, N_CONTESTS + 1)
    ]
    candidates = [
        {"Id": 100 * k + c, "Description": f"Candidate {k}-{c}", "ContestId": k, "Type": "Regular"}
        for k in range(1, N_CONTESTS + 1)
        for c in range(N_CANDIDATES)
    ]
    portions = [{"Id": p, "Description": f"Precinct {p}"} for p in range(400)]
    for name, listed in (("Contest", contests), ("Candidate", candidates), ("PrecinctPortion", portions)):
        (folder / f"{name}Manifest.json").write_text(json.dumps({"Version": "5", "List": listed}))
    rng = np.random.default_rng(seed)
    ranked = [_contest(1, rng.permutation(N_CANDIDATES)[: 1 + k % N_RANKS].tolist()) for k in range(400)]
    single = [[_contest(k, [c]) for c in range(N_CANDIDATES)] for k in range(2, N_CONTESTS + 1)]
    for file in range(n_files):
        first, others = rng.integers(400, size=n_per_file), rng.integers(5, size=(n_per_file, N_CONTESTS - 1))
        sessions = []
        for ballot in range(n_per_file):
            marked = ",".join(
                [ranked[first[ballot]], *(s[c] for s, c in zip(single, others[ballot], strict=True))]
            )
            sessions.append(
                f'{{"TabulatorId":{file % 50},"BatchId":{file},"RecordId":{ballot},"CountingGroupId":2,'
                f'"ImageMask":"D:\\\\Images\\\\{file:06}_{ballot:06}*.*","SessionType":"ScannedVote",'
                f'"VotingSessionIdentifier":"","UniqueVotingIdentifier":"","Original":{{"PrecinctPortionId":'
                f'{ballot % 400},"BallotTypeId":25,"IsCurrent":true,"Cards":[{{"Id":1034,"KeyInId":1034,'
                f'"PaperIndex":0,"Contests":[{marked}],"OutstackConditionIds":[]}}]}}}}'
            )
        text = f'{{"Version":"5.17","ElectionId":"made","Sessions":[{",".join(sessions)}]}}'
        (folder / f"CvrExport_{file + 1000}.json").write_text(text)
    return folder


def make_table(path: Path, n_ballots: int, seed: int = 0) -> Path:
    """Write a table of ballots with precincts, skipped ranks and overvotes."""
    rng = np.random.default_rng(seed)
    names = np.array([*(f"Candidate {k}" for k in range(12)), "skipped", "overvote"])
    orders = np.argsort(rng.random((n_ballots, 12)), axis=1)[:, :6]
    lengths, odd = rng.integers(1, 7, size=n_ballots), rng.random(n_ballots) < 0.01
    orders[np.arange(6) >= lengths[:, None]] = 12
    orders[odd, 1] = 13
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("Precinct," + ",".join(f"rank{k}" for k in range(1, 7)) + "\n")
        stream.writelines(f"P{k % 90},{','.join(row)}\n" for k, row in enumerate(names[orders].tolist()))
    return path


def measure(path: Path, contest: str | None) -> None:
    """Read in this process and print what it took."""
    import permix

    began, cpu = time.perf_counter(), time.process_time()
    votes = permix.read(path, **({"contest": contest} if contest else {}))
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{path.name}: {votes.n_agents:,} ballots in {wall:.1f} s ({cpu:.1f} CPU s), {peak:.2f} GiB at most"
    )


def main() -> None:
    """Make the elections, and read each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ballots", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--contest", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read is not None:
        measure(given.read, given.contest)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        export, table = folder / "dominion", folder / "ballots.csv"
        if not export.exists():
            make_dominion(export, -(-given.ballots // 1000), 1000)
        if not table.exists():
            make_table(table, given.ballots)
        for path, contest in ((export, "1"), (table, None)):
            command = [sys.executable, "-m", "benchmarks.cast_votes", "--read", str(path)]
            subprocess.run([*command, *(["--contest", contest] if contest else [])], check=True)


if __name__ == "__main__":
    main()
