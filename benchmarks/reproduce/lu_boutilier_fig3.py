"""Figure 3 of Lu & Boutilier (2014): how far AMP's distribution is from the true Mallows posterior.

20 agents for each setting reveal each pair of their ranking with probability alpha. For each agent, the
Kullback-Leibler divergence of AMP's distribution (equation 15) from the posterior, divided by the posterior's
entropy, exactly: by going through all rankings that agree with the agent, as the authors did. The paper
says: "average normalized KL error ranging from 1-5%".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from benchmarks.reproduce.report import Outcome, draw_boxes, run_from_command_line
from permix.data.preferences import Preferences
from permix.datasets import make_mallows_mixture


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment; the paper's by default."""

    n_agents: int = 20
    alphas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    dispersions: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    n_items: tuple[int, ...] = (4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
    seed: int = 0


QUICK = Sizes(n_agents=10, alphas=(0.1, 0.5, 0.9), dispersions=(0.1, 0.5, 1.0), n_items=(4, 8, 11, 14))


@dataclass(frozen=True)
class Divergence:
    """How AMP's distribution Q compares with the posterior P of one agent; all exact, in nats."""

    n_rankings: int
    log_normalizer: float
    entropy: float
    from_posterior: float  # KL(P, Q), the paper's
    from_amp: float  # KL(Q, P)
    amp_total: float  # probability of all rankings under Q: 1, as a check

    @property
    def ratio(self) -> float:
        """KL(P, Q) over the entropy of P; 0 where one ranking alone agrees."""
        return self.from_posterior / self.entropy if self.n_rankings > 1 else 0.0

    @property
    def other_ratio(self) -> float:
        """The same with KL(Q, P)."""
        return self.from_amp / self.entropy if self.n_rankings > 1 else 0.0


def divergence(preferences: Preferences, dispersion: float) -> Divergence:
    """Compare AMP with the posterior for one agent, center 0, 1, 2, …."""
    m = preferences.n_items
    mentioned, better = preferences.closure(0)
    above = np.zeros((m, m), dtype=np.bool_)  # above[i, j]: j must be above i
    above[np.ix_(mentioned, mentioned)] = better.T
    # cumulative[k] = 1 + φ + … + φ^(k - 1), of which all insertion probabilities are made.
    cumulative = np.concatenate([[0.0], np.cumsum(dispersion ** np.arange(m))])
    count, mass, mass_weight, mass_distance, amp, amp_weight = sums_over_rankings(
        above, dispersion, cumulative
    )
    log_z = float(np.log(cumulative[1:]).sum())
    log_normalizer = float(np.log(mass)) - log_z
    decay = -float(np.log(dispersion))
    return Divergence(
        n_rankings=int(count),
        log_normalizer=log_normalizer,
        entropy=float(np.log(mass)) + decay * mass_distance / mass,
        from_posterior=mass_weight / mass - log_normalizer,
        from_amp=log_normalizer - amp_weight / amp,
        amp_total=float(amp),
    )


@njit(cache=True, nogil=True)
def sums_over_rankings(above, dispersion, cumulative):
    """Sum over all rankings r that agree: 1, φ^d, φ^d ln w, φ^d d, Q and Q ln w.

    w = P(r) / Q(r) with P the unconditional model and Q the distribution of AMP. Every ranking is grown by
    insertion, in all allowed ways, so each is met once. The last insertion is summed in closed form, since
    its weight does not depend on the place.
    """
    m = above.shape[0]
    order = np.empty(m, np.int64)  # items inserted so far
    place = np.full(m, -1, np.int64)  # where step i is being put; -1 before the first
    low = np.zeros(m, np.int64)
    high = np.zeros(m, np.int64)
    insertion_mass = np.zeros(m)  # Σ φ^(i - p) over the allowed places p of step i
    power = np.ones(m + 1)  # φ^(distance) of the first i steps
    distance = np.zeros(m + 1, np.int64)
    log_weight = np.zeros(m + 1)
    amp = np.ones(m + 1)  # probability of the first i steps under AMP
    sums = np.zeros(6)
    i = 0
    while i >= 0:
        if place[i] < 0:  # first visit: allowed places
            low[i] = 0
            high[i] = i
            for p in range(i):
                if above[i, order[p]]:
                    low[i] = p + 1
                elif above[order[p], i]:
                    high[i] = p
                    break
            mass = dispersion ** (i - high[i]) * cumulative[high[i] - low[i] + 1]
            insertion_mass[i] = mass
            log_weight[i + 1] = log_weight[i] + np.log(mass / cumulative[i + 1])
            if i == m - 1:
                spread = 0.0
                for p in range(low[i], high[i] + 1):
                    spread += (i - p) * dispersion ** (i - p)
                total = power[i] * mass
                sums[0] += high[i] - low[i] + 1
                sums[1] += total
                sums[2] += total * log_weight[m]
                sums[3] += total * distance[i] + power[i] * spread
                sums[4] += amp[i]
                sums[5] += amp[i] * log_weight[m]
                i -= 1
                continue
            place[i] = low[i] - 1
        else:  # take the item out of its last place
            for p in range(place[i], i):
                order[p] = order[p + 1]
        place[i] += 1
        if place[i] > high[i]:
            place[i] = -1
            i -= 1
            continue
        for p in range(i, place[i], -1):
            order[p] = order[p - 1]
        order[place[i]] = i
        back = i - place[i]
        step = dispersion**back
        power[i + 1] = power[i] * step
        distance[i + 1] = distance[i] + back
        amp[i + 1] = amp[i] * step / insertion_mass[i]
        i += 1
    return sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]


def ratios(
    n_items: int, alpha: float, dispersion: float, n_agents: int, seed: int
) -> tuple[list[Divergence], np.ndarray]:
    """Draw agents and compare AMP with the posterior of each."""
    made = make_mallows_mixture(
        n_agents,
        n_items,
        1,
        dispersion=dispersion,
        observed="pairs",
        pair_fraction=alpha,
        centers=[np.arange(n_items)],
        random_state=seed,
    )
    found = [divergence(made.data[row], dispersion) for row in range(n_agents)]
    return found, np.array([one.ratio for one in found])


def run(sizes: Sizes) -> Outcome:
    """Compute the three panels."""
    settings = [("alpha", 10, alpha, 0.5) for alpha in sizes.alphas]
    settings += [("dispersion", 10, 0.2, dispersion) for dispersion in sizes.dispersions]
    settings += [("items", m, 0.2 if m <= 13 else 0.5, 0.5) for m in sizes.n_items]
    rows: list[list[Any]] = []
    series: dict[str, dict[str, list[float]]] = {"alpha": {}, "dispersion": {}, "items": {}}
    for number, (varied, m, alpha, dispersion) in enumerate(settings):
        seeds = np.random.SeedSequence([sizes.seed, number]).generate_state(1)
        found, values = ratios(m, alpha, dispersion, sizes.n_agents, int(seeds[0]))
        label = {"alpha": alpha, "dispersion": dispersion, "items": m}[varied]
        series[varied][str(label)] = values.tolist()
        rows.append(
            [
                varied,
                m,
                alpha,
                dispersion,
                "1-5%",
                f"{values.mean():.1%}",
                f"{np.median(values):.1%}",
                f"{values.max():.1%}",
                f"{np.mean([one.other_ratio for one in found]):.1%}",
                max(one.n_rankings for one in found),
            ]
        )
    means = [np.mean(values) for panel in series.values() for values in panel.values()]
    return Outcome(
        "Figure 3: KL of AMP's distribution from the Mallows posterior, over the posterior's entropy",
        [
            "varied",
            "m",
            "α",
            "φ",
            "paper's averages",
            "mean",
            "median",
            "largest",
            "mean, KL(Q,P)",
            "rankings",
        ],
        rows,
        [
            f"Average over all settings: {np.mean(means):.1%}; settings from {min(means):.1%} to "
            f"{max(means):.1%}.",
            "Exact sums over all rankings that agree; the largest number of them is in the last column.",
            "KL(P, Q) with P the posterior is taken for the paper's divergence; the other direction is "
            "beside it.",
            "An agent with whom one ranking alone agrees has entropy 0 and counts as ratio 0.",
        ],
        series,
    )


def draw(outcome: Outcome, figure: Any) -> None:
    """Draw the paper's three box-and-whisker plots."""
    name = "KL / entropy of the posterior"
    labels = {"alpha": "α", "dispersion": "φ", "items": "items"}
    draw_boxes(figure, [(labels[key], name, values) for key, values in outcome.series.items() if values])
    for axis in figure.axes:
        axis.set_ylim(bottom=0)


if __name__ == "__main__":
    run_from_command_line(__doc__, Sizes(), QUICK, run, draw)
