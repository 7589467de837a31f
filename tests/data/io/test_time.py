"""Text that makes searches begin anew at each character is read or refused in time that grows with it.

Before, 20,000 blanks in one cell took 14 seconds of processor time, and four times as many sixteen times
as long.
"""

from __future__ import annotations

import contextlib
import time
import warnings

import pytest

import permix
from permix.errors import PermixError

LENGTH = 40_000
FORMS = {
    "header.csv": "id,rank1,{}\n1,Ann,Bo\n2,Bo,Ann\n",
    "list.csv": 'id,ranking\n1,"{}"\n2,Ann>Bo\n',
    "ranks.csv": 'rank1,rank2\nAnn,"{}"\nBo,Ann\n',
    "numbers.csv": 'tea,milk\n"{}",2\n1,2\n',
    "ratings.csv": 'voter,item,rating\n1,a,"{}"\n1,b,2\n',
    "battles.csv": 'model_a,model_b,winner\na,b,"{}"\na,b,a\n',
    "x.cvotes": "A>B\n{}\n",
    "x.abif": "3:{}\n2:A>B\n",
    "x.txt": "{}\nA>B\n",
}


def test_long_runs_of_lines_beside_arrows(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f'id,ranking\n1,"Ann>{chr(10) * LENGTH}Bo"\n2,"Bo{chr(10) * LENGTH}>Ann"\n')
    begun = time.process_time()
    votes = permix.read(path)
    assert votes.orders.tolist() == [[0, 1], [1, 0]]
    assert time.process_time() - begun < 3


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("run", [" ", "ab", "- ", "a>", "1e", "a\n"])
def test_long_runs(tmp_path, form, run):
    path = tmp_path / form
    long = f"a{run * (LENGTH // len(run))}b"
    path.write_text(FORMS[form].format(long if form.endswith(".csv") else long.replace("\n", " ")))
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(PermixError):
            permix.read(path)
    assert time.process_time() - begun < 3
