# mypy: ignore-errors
"""Annealed importance sampling of P(v): from the uniform model to a Mallows model in small steps.

AMP inserts items without looking at the preferences of those still to come; where preferences go against a
concentrated model, its draws miss the rankings that matter. Under the uniform model they do not. So a run
(Neal 2001) starts with a ranking from the posterior of the uniform model, and then goes through models with
λ growing to its full value: at each it multiplies its weight by the ratio of the new to the old probability,
and follows with a sweep of local moves, which leave the new posterior as it is. The mean weight estimates the
ratio of the two normalizers without bias.
"""

from __future__ import annotations

import numpy as np

from permix.distributions.conditioning.local_moves_jit import (
    limits_by_step,
    local_sweep,
    new_scratch,
    new_state,
    set_order,
)
from permix.kernels.jit import kernel
from permix.kernels.streams import fill_uniform, padded


@kernel
def annealed_rows(first, last, key, arrays, ranks, ladder, starts, n_first, log_weights):
    """Make runs first..last-1 for agent 0.

    ``ranks`` is the rank vector of the center, ``ladder`` the LocalModels on the way, the uniform one first;
    ``starts`` (runs, m) are orderings that agree; ``n_first`` sweeps of the uniform model come before a run
    begins. The mean of exp(``log_weights``) estimates Σ_r exp(-λ·k(r)) over the rankings r that agree,
    divided by their number.
    """
    n = ranks.size
    uniforms = np.empty(padded(n + 1))
    scratch = new_scratch(n)
    state = new_state(n)
    limits = limits_by_step(arrays, 0, ranks)
    n_models = ladder.decays.shape[0]
    for run in range(first, last):
        set_order(state, starts[run], ranks)
        log_weight = 0.0
        for t in range(-n_first, n_models - 1):
            if t > 0:
                now, before = ladder.decays[t], ladder.decays[t - 1]
                for i in range(n):
                    log_weight -= (now[i] - before[i]) * (i - state.places[i])
            fill_uniform(key[0], key[1], n_first + t, run, uniforms)
            local_sweep(state, ladder, max(t, 0), limits, uniforms, scratch)
        now, before = ladder.decays[n_models - 1], ladder.decays[n_models - 2]
        for i in range(n):
            log_weight -= (now[i] - before[i]) * (i - state.places[i])
        log_weights[run] = log_weight
