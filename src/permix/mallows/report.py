"""What a mixture of Mallows models found: the answer in sentences, and the sections of its report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.distributions.conditioning.components import MallowsComponents
from permix.estimators.known import labels_of
from permix.estimators.wording import part_of_all
from permix.mallows.results import RECURS, MallowsFit, climbing_iterations, remarks
from permix.reporting import ballots
from permix.reporting.agent_weights import weight_blocks, weight_sentences
from permix.reporting.chosen_number import chosen_by
from permix.reporting.content import Answer, Level, Note, Paragraph, Section, Verdict
from permix.reporting.context import Context
from permix.reporting.distance_words import FACTS, dispersion_text, largest, under
from permix.reporting.rank_answer import sentences
from permix.reporting.rank_groups import RankedGroup, RankedGroups, as_far_as_told, membership_numbers
from permix.reporting.rank_sections import group_sections, pairs_section, split_section
from permix.reporting.shared import covariate_blocks, gaps_section
from permix.reporting.verdicts import of_baselines, of_recurrence, verdict
from permix.reporting.words import all_of, count_of, shown

# What a restart is, said once.
RESTART = "a restart searches anew from another random beginning"
ELSEWHERE = "; one that ends elsewhere may still hold many of the same groups"
REFERENCE = (
    "Lu and Boutilier (2014), Effective sampling and learning for Mallows models with pairwise-preference "
    "data, Journal of Machine Learning Research 15, 3963–4009."
)


def found_groups(fit: MallowsFit) -> RankedGroups:
    """Return the groups as reports describe them."""
    mixture, counts = fit.components, np.asarray(fit.counts)
    n = fit.n_agents
    agents, sure = membership_numbers(fit.probabilities, counts)
    agents = np.rint(agents * (n / counts.sum())).astype(np.int64)
    known = len(fit.group_matches) > 1
    most = largest(mixture.distance, mixture.n_items)
    groups = []
    for k in range(mixture.n_components):
        share = float(mixture.weights[k])
        ends = fit.share_intervals[k].tolist() if mixture.n_components > 1 else (None, None)
        distance = mixture.component(k).expected_distance()
        groups.append(
            RankedGroup(
                share,
                low=ends[0],
                high=ends[1],
                agents=int(agents[k]),
                how_sure=float(sure[k]),
                order=mixture.centers[k],
                found=int(fit.recurrences[k]) if known else None,
                facts=(
                    ("dispersion", dispersion_text(float(mixture.dispersions[k]), mixture.distance)),
                    (FACTS[mixture.distance], f"{distance:.1f} of {most:,}"),
                ),
                first=_first(mixture, k),
            )
        )

    def draw(k: int, size: int, rng: np.random.Generator) -> Array:
        return np.asarray(mixture.component(k).sample(size, random_state=rng).orders)

    return RankedGroups(
        [shown(name) for name in labels_of(fit, mixture.items)],
        groups,
        n,
        draw,
        share_is=_what_intervals_hold(fit),
        center_is="The center is the ranking that members are spread around.",
        runs=len(fit.at_best),
        run_name="restart",
        probabilities=fit.probabilities,
        counts=counts,
    )


def _first(mixture: MallowsComponents, k: int) -> Array | None:
    """Return how probably a member puts each item first, where that needs no draws: by repeated insertion."""
    if mixture.distance != "kendall":
        return None
    weights = float(mixture.dispersions[k]) ** np.arange(mixture.n_items)
    found = np.empty(mixture.n_items)
    found[mixture.centers[k]] = weights / weights.sum()
    return found


def _what_intervals_hold(fit: MallowsFit) -> str:
    """Say what intervals of shares hold, and what they do not."""
    shares, resampled = fit.restart_shares, fit.resampled_shares
    if resampled is not None:
        said = (
            "Intervals take the agents as a sample: groups were fitted anew, centers and dispersions with "
            f"shares, to {len(resampled)} weighted samples of them, from what the restarts had found"
        )
        n_found = int(np.isfinite(resampled).all(axis=1).sum())
        if n_found < len(resampled):
            said += f" ({n_found} of these had all groups; one without a group says nothing of its share)"
    else:
        exact = fit.share_errors is not None and not fit.log_likelihood.standard_error
        known = "the centers of the groups" if exact else "centers and dispersions of the groups"
        said = f"Intervals take the agents as a sample, and {known} as known"
    if shares is not None and len(shares) > 1:
        n = int(fit.as_good.sum())
        runs = all_of(len(shares), "restart") if n == len(shares) else f"{n} of {len(shares)} restarts"
        said += f"; they are wide enough to hold the sizes in {runs}, which fit equally well but for chance"
    return f"{said}{part_of_all(fit)}. Another number of groups gives other sizes."


def answer(fit: MallowsFit, context: Context) -> Answer:
    """Say what was found, and how far to trust it."""
    more = weight_sentences(fit.components.by_agent)
    return Answer(_verdict(fit), (*sentences(as_far_as_told(found_groups(fit), context)), *more))


def _verdict(fit: MallowsFit) -> Verdict:
    judged: list[tuple[Level, str]] = []
    advice = []
    if fit.components.n_components == 1:
        judged.append(("good", "With one group there is nothing to divide, and no restart could divide it."))
    elif not fit.verdict:
        judged.append(("care", "EM was run once, so that nobody knows whether there is a better optimum."))
        advice.append("Fit again with several starts, such as --starts 10.")
    else:
        alone = int(fit.at_best.sum()) == 1
        ended = "" if fit.at_best.all() else ELSEWHERE
        judged.append(("care" if alone else "good", f"{fit.verdict} ({RESTART}{ended})."))
        if alone:
            advice.append("More --starts may find a better optimum; fewer groups (-k) may recur.")
    if not (fit.converged or fit.interrupted):
        n = count_of(climbing_iterations(fit), "iteration")
        judged.append(("care", f"EM did not come to rest within {n}."))
        advice.append("A larger --max-iter goes further.")
    if fit.components.n_components > 1 and len(fit.group_matches) > 1:
        judged += _of_groups(fit)
    return verdict([*judged, *of_baselines(fit)], advice)


def _of_groups(fit: MallowsFit) -> list[tuple[Level, str]]:
    """Judge groups by the restarts that fit as well: one that ended lower says nothing against them."""
    judged = fit.judged_restarts
    n_lower = len(fit.group_matches) - len(judged)
    if not n_lower:
        return of_recurrence(fit.recurrences.tolist(), len(fit.group_matches), "restart")
    ended = "one that fits worse says" if n_lower == 1 else f"{n_lower} that fit worse say"
    found = (fit.group_matches[judged] >= RECURS).sum(axis=0).tolist()
    which = f" that fits as well as chance can tell ({ended} nothing against them)"
    if min(found) == len(judged):
        which = which.replace("fits", "fit", 1)
    return of_recurrence(found, len(judged), "restart", which)


def subtitle(fit: MallowsFit) -> str:
    """Say what the report is about."""
    n, items = fit.n_agents, len(fit.components.items)
    groups = count_of(fit.components.n_components, "group")
    kind = f"Mallows mixture of {groups}{under(fit.components.distance)}"
    return f"{count_of(n, 'agent')}, {count_of(items, 'item')}; {kind}"


def evidence(fit: MallowsFit, data: Any) -> dict[str, Any]:
    """Return what the data say of the groups: the fit does not keep them."""
    return ballots.evidence(data, fit.labels, fit.probabilities.max(axis=1), np.asarray(fit.counts))


def completed(fit: MallowsFit, context: Context) -> Context:
    """Add what the data say, where they are given."""
    if context.data is None:
        return context
    return replace(context, about={**context.about, **evidence(fit, context.data)})


def sections(fit: MallowsFit, context: Context) -> list[Section]:
    """Describe the groups."""
    found = as_far_as_told(found_groups(fit), context)
    notes = [Note(f"{remark[0].upper()}{remark[1:]}.") for remark in remarks(fit) if "recur" not in remark]
    explained = Paragraph(
        "Dispersion says how united a group is: 0, all members rank as the center does; 1, they do not agree "
        "at all. Maximum likelihood gives one center for each group, and no interval for it; how "
        "surely a group was found is in how many restarts it recurs."
    )
    return [
        group_sections(
            found, context, explained, *notes, *weight_blocks(fit.components.by_agent), *covariate_blocks(fit)
        ),
        split_section(found),
        pairs_section(found),
        Section(
            "numbers", "How many groups there are", tuple(chosen_by(context, fit.components.n_components))
        ),
        gaps_section(context),
    ]
