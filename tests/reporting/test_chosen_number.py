"""Why there are so many groups, in words."""

from __future__ import annotations

import pytest

from permix.reporting.chosen_number import chosen_by, number_sentences, number_table
from permix.reporting.context import Context


def held_out(scores, chosen, error=0.01):
    best = max(scores)
    return {
        "selection": [
            {"n_groups": n, "train": score, "validation": score, "n_iter": 7}
            | {"difference": score - best, "difference_error": error, "chosen": n == chosen}
            for n, score in enumerate(scores, start=1)
        ]
    }


@pytest.mark.parametrize(
    ("scores", "chosen", "said"),
    [
        (
            [-6.0, -5.3, -5.3],
            2,
            "Why two: of 1 to 3 groups, agents who were held out decide; with one, what they say is 0.5 "
            "times as probable, and with more groups it is no more probable.",
        ),
        (
            [-6.0, -5.3, -5.31, -5.295],
            2,
            "and with four, 1.01 times, which is within one standard error, so that the smaller number is "
            "taken.",
        ),
        ([-6.0, -5.3, -5.285], 2, "and with three, 1.02 times, which may be chance."),
        ([-6.0, -5.3, -5.2], 2, "and with three, 1.1 times."),
        ([-6.0, -5.3], 2, "and more were not tried, and might do better."),
    ],
)
def test_sentences_say_what_fewer_and_more_groups_cost(scores, chosen, said):
    (sentence,) = number_sentences(held_out(scores, chosen))
    assert sentence.endswith(said)


def test_nothing_is_said_where_nobody_chose():
    assert number_sentences({}) == ()
    older = [
        {name: v for name, v in row.items() if name != "chosen"} for row in held_out([-6, -5], 2)["selection"]
    ]
    assert number_sentences({"selection": older}) == ()


def test_the_table_has_the_words_of_the_terminal():
    table = number_table(held_out([-6.0, -5.3, -5.301], 2)["selection"])
    assert table.columns == ("groups", "fitted", "held out", "difference", "error", "remark")
    assert [row[-1] for row in table.rows] == ["", "best, chosen", ""]
    assert table.rows[1][3:5] == ("", "")
    assert "nats" in table.note
    by_criterion = [
        {"n_groups": n, "log_likelihood": -100.0 - n, "parameters": 2, "bic": 210.0 + n, "chosen": n == 1}
        for n in (1, 2)
    ]
    table = number_table(by_criterion)
    assert table.columns == ("groups", "log-likelihood", "parameters", "BIC", "remark")
    assert number_sentences({"selection": by_criterion})[0].endswith("BIC is smallest for this number.")


def test_who_chose_is_said():
    assert chosen_by(Context(""), 3)[0].text.startswith("You asked for 3 groups.")
    assert chosen_by(Context("", {"chosen": [{"said": "x"}]}), 3)[0].text.startswith("permix fit auto took")
