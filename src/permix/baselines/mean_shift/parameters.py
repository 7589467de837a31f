"""What a user may choose about blurring mean-shift."""

from __future__ import annotations

from permix.estimators.checks import Real, Whole
from permix.estimators.parameters import ThreadParameters, declare


class MeanShiftParameters(ThreadParameters):
    """Parameters of :class:`permix.BlurringMeanShift`."""

    length: int | None = declare(
        None,
        Whole(1, special=(None,)),
        "How many items centers list, at most; by default as many as the longest list of the data. With "
        "longer centers lists must agree on more before they meet, so that groups get more and smaller.",
        positional=True,
    )
    decay: float | None = declare(
        None,
        Real(above=0.0, special=(None,)),
        "How fast the weight exp(-θ d) of a list falls with its distance d; by default it is estimated in "
        "every iteration. A larger one gives more and smaller groups.",
    )
    max_iter: int = declare(100, Whole(1), "Iterations after which to give up; a handful is the rule.")
