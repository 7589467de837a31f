"""Small real fits from several threads at once, in forked and spawned processes, and in joblib's workers."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading

import joblib
import numpy as np
import pytest

import permix
from permix.runtime import threads
from tests.every_run import first_in_every_run

ORDERS = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 1, 3, 2], [3, 2, 1, 0], [3, 2, 0, 1], [2, 3, 1, 0]] * 5


def answers(seed: int) -> list[list[float]]:
    """Distances, a fit by EM, chains, and draws: all in threads, however small."""
    threads.WORTH_THREADS = 0
    votes = permix.Rankings.from_orders(ORDERS)
    mallows = permix.MallowsMixture(2, n_init=3, random_state=seed, n_jobs=2, progress=False).fit(votes)
    table = np.random.default_rng(0).normal(size=(20, 2))
    mixture = permix.DPMixture(n_draws=20, n_burn_in=5, n_chains=2, random_state=seed, n_jobs=2)
    drawn = permix.Mallows(range(9), 0.5).sample(50, seed)
    return [
        np.ravel(part).astype(float).tolist()
        for part in (
            permix.distance_matrix(ORDERS),
            permix.distance_matrix(drawn.orders, metric="footrule"),
            mallows.predict_proba(votes),
            mixture.fit(table)._fit.draws.arrays["log_joint"],
        )
    ]


def answers_into(queue: multiprocessing.Queue, seed: int) -> None:
    queue.put((seed, answers(seed)))


@pytest.fixture(scope="module")
def expected():
    """What one thread of one process answers; afterwards small work stays in one thread again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "WORTH_THREADS", 0)
        yield {seed: answers(seed) for seed in range(4)}


pytestmark = pytest.mark.filterwarnings("ignore")


def test_several_threads_at_once(expected):
    found, errors = {}, []

    def call(seed):
        try:
            for _ in range(2):
                found[seed] = answers(seed)
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=call, args=(seed % 4,)) for seed in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(200)
    assert not errors
    assert found == expected


# What is spawned imports everything anew, as joblib's workers do.
@pytest.mark.parametrize("method", first_in_every_run(["fork", "spawn"]))
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_processes_of_their_own(expected, method):
    """Forked after permix ran here, with threads, which the children do not inherit."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    seeds = range(2 if method == "fork" else 1)
    children = [context.Process(target=answers_into, args=(queue, seed)) for seed in seeds]
    for child in children:
        child.start()
    try:
        found = dict(queue.get(timeout=200) for _ in children)
        for child in children:
            child.join(60)
        assert not any(child.exitcode for child in children)
    finally:
        for child in children:
            child.kill()
    assert found == {seed: expected[seed] for seed in seeds}


def processors(_: int) -> tuple[int, int]:
    return os.getpid(), threads.n_processors()


def test_joblib_workers(expected):
    found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(answers)(seed) for seed in range(3))
    assert found == [expected[seed] for seed in range(3)]
    seen = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(processors)(i) for i in range(4))
    assert os.getpid() not in dict(seen)
    assert all(n <= max(1, joblib.cpu_count() // 2) for _, n in seen), "workers divide the processors"
    assert joblib.Parallel(n_jobs=2, backend="threading")(
        joblib.delayed(answers)(seed) for seed in range(2)
    ) == [expected[seed] for seed in range(2)]
