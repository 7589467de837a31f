"""Why there are so many groups, in words."""

from __future__ import annotations

import pytest

from permix.reporting.chosen_number import chosen_by, number_sentences, number_table, number_to_print
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
            "times as probable as with two, and with more groups it is no more probable.",
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


MINNEAPOLIS = [-2.0169, -2.0080, -2.0064, -2.0038, -2.0022, -1.9996, -2.0010]


def not_all_recur(recurs, command="permix fit mallows my.csv --select 1-6 --seed 3"):
    """Six to twelve groups, of which eleven are best; errors are such that nine to twelve are tied."""
    best = max(MINNEAPOLIS)
    rows = [
        {"n_groups": n, "train": score, "validation": score, "chosen": n == 11, "asked": n < 7}
        | {"difference": score - best, "difference_error": 0.0022 * (n != 11), "all_recur": recurs.get(n)}
        for n, score in enumerate(MINNEAPOLIS, start=6)
    ]
    return {"selection": rows, "run": [{"what": "command", "value": command}]}


def test_readers_are_led_to_a_number_whose_groups_all_recur():
    about = not_all_recur({11: False, 10: False, 9: False, 8: False, 7: False, 6: True})
    said = number_to_print(about)
    assert said.startswith("Eleven groups predict best, but not all of them recur in every restart; nine to ")
    assert "nine to twelve groups predict equally well, within half a percent or chance." in said
    assert said.endswith(
        "six is the largest whose groups all recurred: print or build on these, which -k 6 finds, instead of "
        "--select."
    )
    blocks = chosen_by(Context("votes", about), 11)
    assert blocks[0].text == said
    assert blocks[1].text == "permix fit mallows my.csv -k 6 --seed 3"
    # A fit made in Python has no command.
    in_python = chosen_by(Context("", {**about, "run": []}), 11)
    assert [type(block).__name__ for block in in_python] == ["Paragraph", "Paragraph", "Table"]
    (why,) = number_sentences(about)
    assert why.endswith("You asked for 6 to 6; 6 groups were the best of these, so 7 to 12 followed.")
    table = number_table(about["selection"])
    assert table.columns[-2:] == ("all recur", "remark")
    assert [row[-2] for row in table.rows] == ["yes", *["no"] * 5, ""]


def test_nobody_is_led_anywhere_where_all_groups_recur_or_nobody_looked():
    assert number_to_print(not_all_recur({})) == number_to_print(not_all_recur({11: True})) == ""
    assert number_to_print({}) == number_to_print(held_out([-6.0, -5.3], 2)) == ""


def test_no_number_is_named_where_none_recurs():
    assert "Of no smaller number" in number_to_print(not_all_recur(dict.fromkeys(range(2, 12), False)))
    stopped = number_to_print(not_all_recur({11: False, 10: False}))
    assert stopped.endswith("within half a percent or chance.")
    assert "smaller" not in stopped


def test_numbers_as_good_as_the_best_are_named_where_the_chosen_one_is_not_the_smallest():
    about = held_out([-6.0, -5.301, -5.3], 3)
    said = number_sentences(about)[1]
    assert said == "Two and three groups predict equally well, within half a percent or chance."
    assert len(number_sentences(held_out([-6.0, -5.3, -5.301], 2))) == 1


def test_numbers_between_tied_ones_are_tied_too():
    """Errors of paired fits that are nearly alike are tiny: 7 and 8 seemed worse than 3, which is worse."""
    scores = [-2.0935, -2.0280, -2.0017, -2.0010, -2.0003, -2.0000]
    about = held_out(scores, 5)
    for row, error in zip(about["selection"], [0.01, 0.006, 0.0035, 0.0002, 0.0001, 0.0], strict=True):
        row["difference_error"] = error
    assert number_sentences(about)[1].startswith("Three to six groups predict equally well")
    about["selection"][3]["difference"] = -0.02
    assert number_sentences(about)[1].startswith("Three, five and six groups predict equally well")
