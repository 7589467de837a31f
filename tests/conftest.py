"""Shared by all tests: property tests without surprises, the real-data folder, and what tests cost."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.forks import Forks

# Where tests are started in the background of a script, Ctrl-C is ignored, in all that they start, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Tests that run at once share what they compile; they need no further processes for it.
os.environ["PERMIX_COMPILE_ALONE"] = "1"
# Files are written whole, as ever, but nobody waits until they are on the disk: half the time of small ones.
os.fsync = lambda file: None
# The first call of compiled code compiles, so no deadline. The same 100 examples in every run; the slow run
# has more, and others each time (``make test-slow``).
settings.register_profile("permix", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("many", deadline=None, max_examples=int(os.environ.get("PERMIX_EXAMPLES", "500")))
settings.load_profile("many" if "PERMIX_EXAMPLES" in os.environ else "permix")

# Python's search for garbage walks over all tests again and again while they are collected: a third of that.
gc.disable()


_until_now = 0.0  # processor time, that of child processes that have ended included


def pytest_collection_finish() -> None:
    """Look for garbage again, and seldom: not among what was there before the first test."""
    global _until_now
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    _until_now = sum(os.times()[:4])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cpu", type=int, default=0, metavar="N", help="list the N tests that cost most CPU seconds"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Note what each phase of a test cost, for the process that prints."""
    global _until_now
    report = yield
    before, _until_now = _until_now, sum(os.times()[:4])
    report.user_properties.append(("cpu", _until_now - before))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    seconds: Counter[str] = Counter()
    for report in (report for some in terminalreporter.stats.values() for report in some):
        seconds[report.nodeid] += dict(getattr(report, "user_properties", ())).get("cpu", 0.0)
    for test, cpu in seconds.most_common(config.getoption("--cpu")):
        terminalreporter.write_line(f"{cpu:7.2f} CPU s  {test}")


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """Runs programs in processes of their own."""
    with Forks() as forks:
        yield forks


@pytest.fixture
def data_folder() -> Path:
    """Folder of real data; the test is skipped where PERMIX_DATA does not name one."""
    folder = os.environ.get("PERMIX_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("PERMIX_DATA does not name a folder")
    return Path(folder)
