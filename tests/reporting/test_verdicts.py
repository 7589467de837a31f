"""How far a fit is trusted that was stopped, made on a part of the data, or is of no use."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from permix.posterior.checks import Aspect, compare
from permix.reporting import _as_fitted
from permix.reporting.build import NO_BETTER, OTHER_MODELS, answer_of, build, checks_of
from permix.reporting.check_sections import checks_section, kept_checks
from permix.reporting.content import Code, Paragraph, Verdict
from permix.reporting.context import Context
from permix.reporting.verdicts import (
    HEADLINES,
    UNCHECKED,
    UNCHECKED_REASON,
    checked,
    stopped_early,
    verdict,
    with_care,
)
from tests.estimators.examples import EXAMPLES, fitted

GOOD = verdict([("good", "All is well.")])
BAD = verdict([("bad", "Chains disagree."), ("good", "All is well.")])


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ({}, "The fit was stopped early; this is what was found until then."),
        ({"stopped": "user"}, "The fit was stopped early, by the user; this is"),
        ({"stopped": "time"}, "The fit was stopped early, because the time given ran out; this is"),
        ({"stopped": "user", "made on": "3 of 9 agents"}, "by the user and was made on 3 of 9 agents only."),
    ],
)
def test_a_fit_that_was_stopped_is_trusted_with_care_at_best(ending, said):
    found = stopped_early(GOOD, True, ending)
    assert (found.level, found.headline) == ("care", HEADLINES["care"])
    assert said in found.reasons[0]
    assert "All is well." in found.reasons
    worse = stopped_early(BAD, True, ending)
    assert (worse.level, worse.reasons[0]) == ("bad", "Chains disagree.")
    assert said in worse.reasons[1]


def test_a_part_is_told_where_the_fit_to_it_came_to_its_end():
    assert stopped_early(GOOD, False, {"made on": "3 of 9 agents"}).level == "care"
    assert stopped_early(GOOD, False, {}) is GOOD
    assert with_care(BAD, "Doubt.").headline == HEADLINES["bad"]


def test_a_fit_without_use_begins_with_that():
    fit = fitted("MallowsMixture")._fit
    answer = answer_of(fit, {"no_better": [{"said": "No model predicts."}]})
    assert answer.sentences[0] == "No model predicts."
    assert answer.verdict.level != "good"
    assert answer_of(fit, {}).sentences == answer.sentences[1:]


def test_reports_of_fits_that_were_stopped_say_so_and_do_not_promise_the_same_again():
    fit = fitted("MallowsMixture")._fit
    about = {"run": [{"what": "command", "value": "permix fit mallows v.csv --groups 2"}]}
    context = Context("votes", about, checks=False, file="my fit.permix")

    def parts(found, context):
        by_key = {section.key: section for section in build(found, context, False).sections}
        again = by_key["settings"].sections[0].blocks
        trust = next(block for block in by_key["trust"].blocks if isinstance(block, Verdict))
        command = next(block for block in again if isinstance(block, Code))
        return trust, command.text, [block.text for block in again if isinstance(block, Paragraph)][-1]

    trust, command, promise = parts(fit, context)
    assert command == "permix fit mallows v.csv --groups 2 -o 'my fit.permix'"
    assert "give the same fit" in promise
    assert not any("stopped" in reason for reason in trust.reasons)
    trust, _, promise = parts(dataclasses.replace(fit, interrupted=True), context)
    assert any("stopped early" in reason for reason in trust.reasons)
    assert "need not give the same fit" in promise
    ending = [{"what": "stopped", "value": "time"}, {"what": "made on", "value": "3 of 9 agents"}]
    trust, _, promise = parts(fit, dataclasses.replace(context, about={**about, "ending": ending}))
    assert any("time given ran out and was made on 3 of 9 agents" in reason for reason in trust.reasons)
    assert "need not give the same fit" in promise


def checks_of_shares(off, n=400):
    """Checks of a share of one half among ``n`` agents, which is observed so far from it."""
    rng = np.random.default_rng(0)

    def aspects(share):
        shares = Aspect(["Ann", "Bo"], np.array([share, 1.0 - share]))
        return {"first choices": shares, "column means": Aspect(["x"], np.array([3.0]))}

    drawn = [aspects(rng.binomial(n, 0.5) / n) for _ in range(200)]
    return compare(aspects(0.5 + off), drawn, n)


def test_a_model_that_does_not_reproduce_the_data_is_trusted_with_care():
    found = checked(GOOD, *kept_checks(checks_of_shares(0.2)))
    assert (found.level, found.headline) == ("care", HEADLINES["care"])
    assert "but not first choices" in found.reasons[0]
    assert "Take first choices from the data" in found.advice[0]
    assert checked(BAD, *kept_checks(checks_of_shares(0.2))).level == "bad"
    fine = checked(GOOD, *kept_checks(checks_of_shares(0.0)))
    assert (fine.level, fine.advice) == ("good", ())
    assert fine.reasons[-1].startswith("The model reproduces")


def test_what_only_many_agents_show_is_no_reason_for_care():
    many = checks_of_shares(0.005, n=1_000_000)
    assert not many.aspects["reproduced"].all()
    assert many.lacking == []
    assert checked(GOOD, *kept_checks(many)).level == "good"
    assert checks_of_shares(0.02, n=1_000_000).lacking == ["first choices"]


def test_what_was_not_checked_is_said_where_all_else_is_well(monkeypatch):
    fit = fitted("MallowsMixture")._fit
    monkeypatch.setattr("permix.mallows.report._verdict", lambda fit: GOOD)
    found = answer_of(fit, {}).verdict
    assert (found.level, found.headline) == ("care", UNCHECKED)
    assert found.reasons == ("All is well.", UNCHECKED_REASON)
    kept = answer_of(fit, {"checks": kept_checks(checks_of_shares(0.0))}).verdict
    assert (kept.level, kept.headline) == ("good", HEADLINES["good"])
    assert UNCHECKED_REASON not in kept.reasons
    monkeypatch.setattr("permix.mallows.report._verdict", lambda fit: BAD)
    assert answer_of(fit, {}).verdict == BAD._replace(advice=(*BAD.advice, OTHER_MODELS))


def test_data_are_held_against_a_fit_where_that_is_quick(monkeypatch):
    """What ``fit`` keeps is what its report finds: one truth in the terminal and in the report."""
    fit = fitted("MallowsMixture")._fit
    data = _as_fitted(fit, EXAMPLES["MallowsMixture"].data())
    quick = checks_of(fit, data)
    assert quick["checks"] == kept_checks(checks_section(fit, Context("", data=data))[1])
    monkeypatch.setattr("permix.reporting.check_sections.QUICK_ENTRIES", 1)
    assert checks_of(fit, data) == {}


def test_what_a_fit_keeps_of_its_checks_is_not_denied_where_the_data_are_missing():
    fit = fitted("MallowsMixture")._fit
    kept = kept_checks(checks_of_shares(0.0))
    section, found = checks_section(fit, Context("", {"checks": kept}))
    said = " ".join(block.text for block in section.blocks)
    assert found is None
    assert said.startswith("The model reproduces")
    assert "Checked when it was fitted" in said
    assert "Not checked" not in said
    unknown, _ = checks_section(fit, Context(""))
    assert "Not checked" in unknown.blocks[0].text


def test_no_fit_is_built_on_where_nothing_beats_a_simple_description():
    fit = fitted("MallowsMixture")._fit
    kept = {"checks": kept_checks(checks_of_shares(0.0))}
    found = answer_of(fit, {**kept, "no_better": [{"said": "No model predicts."}], "comparison": []}).verdict
    assert (found.level, found.headline) == ("bad", HEADLINES["bad"])
    assert found.reasons[0] == NO_BETTER
    assert OTHER_MODELS not in found.advice
    assert OTHER_MODELS in answer_of(fit, kept).verdict.advice
