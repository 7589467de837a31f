# mypy: ignore-errors
"""The posterior of a mixture of Mallows models given preferences: sampler SP, and closed forms.

SP (Lu & Boutilier 2014, algorithm 3) alternates between the component of an agent given a full ranking and a
ranking given the component. With MMP for the ranking (independence Metropolis with AMP for the proposal) its
stationary distribution is the posterior of both; with a plain draw of AMP, as in the paper's experiments, it
is so only where AMP is exact.

Where preferences partition all items into levels, the items of a level of s items follow, under each
component, a Mallows model of s items with the component's dispersion around the order in which its center
has them; levels are independent. All that is asked about pairs follows from that.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.amp_jit import amp_places, replay
from permix.distributions.conditioning.amp_plans_jit import make_plan, room_for_plan
from permix.kernels.jit import kernel
from permix.kernels.kemeny_search import improve_by_insertion
from permix.kernels.orders import insertion_code, invert_order, ordering_from_places
from permix.kernels.random import categorical_log_quantile
from permix.kernels.streams import fill_uniform, padded

_CERTAIN = 1.0 - 1e-9  # sums over many rankings lose the last digits


@kernel
def _write(places, center, taken, order, ranks):
    """Write the ordering with these insertion places, and its rank vector."""
    ordering_from_places(center, places, taken, order)
    invert_order(order, ranks)


@kernel
def _log_probability(places, decay, log_total):
    """Return ln P(r) of a Mallows model from the insertion places of r; its distance is Σ i - place."""
    distance = np.int64(0)
    for i in range(places.size):
        distance += i - places[i]
    if distance == 0:  # kept apart because 0 · inf is no number
        return -log_total
    return -decay * distance - log_total


@kernel
def sp_rows(
    first,
    last,
    key,
    jobs,
    log_weights,
    log_totals,
    metropolis,
    n_burn_in,
    n_thin,
    orders,
    labels,
    accepted,
):
    """Run the chain SP for agents first..last-1; keep S states, ``n_thin`` steps apart, after the burn-in.

    The chain starts from one draw of AMP under each component, of which one is taken by its importance
    weight: of positive probability wherever the agent is possible. (The paper starts from any ranking that
    agrees.) A proposed ranking must pass Metropolis' test where ``metropolis`` (MMP), else it is always taken
    (AMP). ``jobs`` are those of ``draws.Jobs``, of geometric models; ``log_weights`` and ``log_totals`` are
    ln π_k and ln Z_k. Fills ``orders`` (J, S, m), ``labels`` (J, S), -1 where the agent has probability zero
    under all components, and ``accepted`` (J,), the proposals taken of ``n_burn_in + S n_thin``.
    """
    arrays, agents, centers, ranks, models = jobs.arrays, jobs.agents, jobs.centers, jobs.ranks, jobs.models
    n_components, n = centers.shape
    length = n_burn_in + labels.shape[1] * n_thin
    rooms = [room_for_plan(n) for _ in range(n_components)]
    uniforms = np.empty(padded(n + 2))
    slots = np.empty(n, np.int32)
    proposed = np.empty(n, np.int64)
    places = np.empty((n_components, n), np.int64)
    taken = np.empty(n, np.int64)
    order = np.empty(n, np.int32)
    rank = np.empty(n, np.int64)
    scores = np.empty(n_components)
    for j in range(first, last):
        plans = [make_plan(arrays, agents[j], ranks[k], rooms[k]) for k in range(n_components)]
        stream = agents[j] * (length + n_components)
        for k in range(n_components):
            fill_uniform(key[0], key[1], 0, stream + k, uniforms)
            scores[k] = log_weights[k] + amp_places(uniforms, models, k, plans[k], slots, places[k])
        accepted[j] = 0
        z = categorical_log_quantile(uniforms[n], scores, n_components)
        if z < 0:
            labels[j] = -1
            continue
        _write(places[z], centers[z], taken, order, rank)
        stream += n_components
        moved = True
        known_for = -1  # the component under which log_weight is that of the present ranking
        log_weight = 0.0
        for t in range(length):
            fill_uniform(key[0], key[1], 0, stream + t, uniforms)
            if moved:
                for k in range(n_components):
                    scores[k] = log_weights[k]
                    if log_weights[k] > -np.inf:
                        insertion_code(rank, centers[k], places[k])
                        scores[k] += _log_probability(places[k], models.decays[k, 0], log_totals[k])
            z = categorical_log_quantile(uniforms[n], scores, n_components)
            if metropolis and z != known_for:
                log_weight = replay(models, z, plans[z], slots, places[z])[0]
                known_for = z
            new_weight = amp_places(uniforms, models, z, plans[z], slots, proposed)
            # Equation 23: P/q of the new ranking by that of the present one.
            moved = not metropolis or new_weight >= log_weight
            if not moved:
                moved = uniforms[n + 1] < np.exp(new_weight - log_weight)
            if moved:
                log_weight = new_weight
                known_for = z
                accepted[j] += 1
                _write(proposed, centers[z], taken, order, rank)
            since = t + 1 - n_burn_in
            if since > 0 and since % n_thin == 0:
                s = since // n_thin - 1
                labels[j, s] = z
                for r in range(n):
                    orders[j, s, r] = order[r]


@kernel
def partition_pair_rows(first, last, arrays, agents, centers, discordance, shares, asks, means):
    """Compute P(a before b | v) of agents whose preferences partition all items, or say nothing.

    ``discordance`` (K, m) is P(worse first) by how far two items are apart (``discordance_by_gap``),
    ``shares`` (J, K) P(component | v); ``asks`` as in ``chains_jit.pair_rows``.
    """
    pair_start, pair_first, pair_second, out_start = asks
    n_components, n = centers.shape
    level_of = np.empty(n, np.int32)
    place = np.empty(n, np.int32)  # within the level, in the order of the center
    for j in range(first, last):
        begin, end = arrays.level_indptr[agents[j]], arrays.level_indptr[agents[j] + 1]
        if not arrays.rest_below[agents[j]]:
            end = begin  # a single level of some items, which says nothing
        n_levels = 1
        if end > begin:
            n_levels += arrays.levels[end - 1] + 1
        level_of[:] = n_levels - 1
        for p in range(begin, end):
            level_of[arrays.level_items[p]] = arrays.levels[p]
        sizes = np.empty(n_levels, np.int32)
        n_pairs = pair_start[j, 1] - pair_start[j, 0]
        for p in range(n_pairs):
            a, b = pair_first[pair_start[j, 0] + p], pair_second[pair_start[j, 0] + p]
            means[out_start[j] + p] = level_of[a] < level_of[b]
        for k in range(n_components):
            if shares[j, k] == 0.0:
                continue
            sizes[:] = 0
            for r in range(n):
                item = centers[k, r]
                place[item] = sizes[level_of[item]]
                sizes[level_of[item]] += 1
            for p in range(n_pairs):
                a, b = pair_first[pair_start[j, 0] + p], pair_second[pair_start[j, 0] + p]
                if a != b and level_of[a] == level_of[b]:
                    gap = place[b] - place[a]
                    if gap > 0:
                        means[out_start[j] + p] += shares[j, k] * (1.0 - discordance[k, gap])
                    else:
                        means[out_start[j] + p] += shares[j, k] * discordance[k, -gap]


@kernel
def consensus_rows(first, last, before, orders, mean_ranks):
    """Order items so that expected disagreement with the agent's ranking is locally least (local Kemeny).

    Whatever is certain stays: the start, by expected rank, has a before b wherever that is certain, and a
    move that breaks it costs more than all others could gain. ``before`` (J, m(m-1)/2) is P(a before b),
    a < b; ``mean_ranks`` are filled with expected ranks, 1 = best.
    """
    n = orders.shape[1]
    net = np.zeros((n, n))
    for j in range(first, last):
        mean_ranks[j] = 1.0
        p = 0
        for a in range(n):
            for b in range(a + 1, n):
                chance = before[j, p]
                p += 1
                mean_ranks[j, b] += chance
                mean_ranks[j, a] += 1.0 - chance
                gain = 2.0 * chance - 1.0
                if chance >= _CERTAIN or 1.0 - chance >= _CERTAIN:
                    gain *= 2.0 * n
                net[a, b] = gain
                net[b, a] = -gain
        order = np.argsort(mean_ranks[j], kind="mergesort").astype(np.int32)
        improve_by_insertion(net, order, 1e-9)
        orders[j] = order
