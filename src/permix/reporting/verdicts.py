"""Can you trust this? What chains, and starts of climbs, say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from permix.estimators.baselines import KEPT, MEMORIZED, in_words
from permix.posterior.diagnostics import verdict_on
from permix.reporting.content import Level, Verdict
from permix.reporting.words import all_of, capital, named, shown

HEADLINES: Mapping[Level, str] = {
    "good": "Yes, as far as the fit itself can tell.",
    "care": "With care.",
    "bad": "Not yet.",
}
UNCHECKED = "Not checked against the data yet."
UNCHECKED_REASON = (
    "Nobody has looked yet whether data drawn from the model are like these; permix report does."
)
WORST: tuple[Level, ...] = ("bad", "care", "good")


# Groups that gain less, in log probability of an agent, explain next to nothing.
LEAST_GAIN = 0.02
Judged = tuple[Level, str]
NOT_REPRODUCED = (
    "Take {} from the data (observed, under “Does the model look like the data?”) and not from the model, "
    "and its groups as a simplification."
)


def verdict(
    judged: Sequence[tuple[Level, str]],
    advice: Sequence[str] = (),
    headlines: Mapping[Level, str] = HEADLINES,
) -> Verdict:
    """Put judgments together: the worst decides, and comes first."""
    found = [level for level in WORST if any(level == each for each, _ in judged)]
    level: Level = found[0] if found else "care"
    reasons = [said for worst in WORST for each, said in judged if each == worst]
    return Verdict(level, headlines[level], tuple(reasons), tuple(advice))


def stopped_early(found: Verdict, interrupted: bool, ending: Mapping[str, str]) -> Verdict:
    """Trust a fit that was stopped, or that was made on a part of the data, with care at best.

    ``ending`` is what its file says of that: who stopped it ("user" or "time"), and the part.
    """
    who, part = ending.get("stopped"), ending.get("made on")
    if not (interrupted or who or part):
        return found
    why = {"user": ", by the user", "time": ", because the time given ran out"}.get(who or "", "")
    so_far = f" and was made on {part} only" if part else "; this is what was found until then"
    further = "More --minutes go further" if who == "time" else "Let it run to its end"
    return with_care(
        found, f"The fit was stopped early{why}{so_far}.", f"{further} before you build on this."
    )


def with_care(found: Verdict, reason: str, *advice: str) -> Verdict:
    """Add a reason to be careful; those that are worse stay in front."""
    if found.level == "bad":
        first, *others = found.reasons
        return found._replace(reasons=(first, reason, *others), advice=(*found.advice, *advice))
    return Verdict("care", HEADLINES["care"], (reason, *found.reasons), (*found.advice, *advice))


def not_yet(found: Verdict, reason: str, *advice: str) -> Verdict:
    """Add a reason, the first one, not to build on a fit."""
    return Verdict("bad", HEADLINES["bad"], (reason, *found.reasons), (*advice, *found.advice))


def unchecked(found: Verdict) -> Verdict:
    """Say that nobody held the data against the model; where all else is well, this decides."""
    if found.level != "good":
        return found
    return found._replace(level="care", headline=UNCHECKED, reasons=(*found.reasons, UNCHECKED_REASON))


def checked(found: Verdict, checks: Mapping[str, Any]) -> Verdict:
    """Add what posterior predictive checks ``said``, which no fit says of itself.

    A model that does not reproduce a side of the data (``lacking`` names them) is trusted with care, unless
    it is off by so little that only very many agents show it.
    """
    said, lacking = shown(checks["said"]), shown(checks["lacking"]) if checks["lacking"] else ""
    if not lacking:
        return found._replace(reasons=(*found.reasons, said))
    return with_care(found, said, NOT_REPRODUCED.format(lacking))


def of_chains(draws: Any, flags: Mapping[str, str] | None = None) -> tuple[Level, str]:
    """Judge chains by whether they agree."""
    found = verdict_on(draws)
    level: Level = "good" if found.converged else "bad" if found.converged is False else "care"
    said = found.message.as_options(flags)
    return level, said if said.endswith((".", "!")) else f"{said}."


def of_recurrence(found: Sequence[int], n_runs: int, run_name: str, what: str = "") -> list[Judged]:
    """Judge groups by how many chains, or restarts, have them."""
    if n_runs < 2 or not len(found):
        return []
    alone = 1 if run_name == "restart" else 0
    never = [k for k, times in enumerate(found) if times <= alone]
    some = [k for k, times in enumerate(found) if alone < times < n_runs]
    if not never and not some:
        every = "The group is" if len(found) == 1 else "All groups are"
        return [("good", f"{every} found in {all_of(n_runs, run_name)}{what}.")]
    said: list[Judged] = []
    if never:
        other = "no other restart" if alone else "no chain in most of its draws"
        level: Level = "bad" if len(never) == len(found) else "care"
        said.append((level, f"{capital(named(never))} {_is(never)} found in {other}{what}."))
    if some:
        said.append(("care", f"{capital(named(some))} {_is(some)} not found in every {run_name}{what}."))
    return said


def of_baselines(fit: Any) -> list[Judged]:
    """Judge a mixture by how much more probable it makes the data than simpler models do, if known."""
    if fit.baselines is None or not np.isfinite(float(fit.log_likelihood)):
        return []
    scores = dict(zip(KEPT, fit.baselines.tolist(), strict=True))
    own = float(fit.log_likelihood) / int(fit.counts.sum())
    # The shares of equal answers know the agents who were fitted by heart: to fall behind them says nothing.
    told = {name: score for name, score in scores.items() if name != MEMORIZED}
    said = in_words(own, told, "Under this model, what an agent says")
    if fit.components.n_components > 1 and own - scores["one group"] < LEAST_GAIN:
        return [("care", f"The groups explain hardly more than one group does. {said}")]
    return [("good", said)]


def _is(groups: Sequence[int]) -> str:
    return "is" if len(groups) == 1 else "are"
