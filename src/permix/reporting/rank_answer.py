"""What groups of rankings are, in sentences: the same in reports and in the terminal."""

from __future__ import annotations

from permix.reporting.rank_groups import RankedGroups
from permix.reporting.words import (
    all_of,
    capital,
    count_of,
    how_often,
    in_a_list,
    interval,
    listed,
    named,
    number,
    one_digit,
    ordinal,
    others,
    percent,
    spelled,
)

# Groups that get a sentence, and items of a center that a sentence names.
MOST_GROUPS, MOST_NAMED = 5, 3
# Other groups that are named one by one.
MOST_OTHERS = 2


def sentences(found: RankedGroups) -> tuple[str, ...]:
    """Say how many groups there are, what each is like, and how sure it is who belongs to them."""
    said = [_how_many(found)]
    said += [group_sentence(found, k) for k in range(min(len(found.groups), MOST_GROUPS))]
    if len(found.groups) > MOST_GROUPS:
        rest = found.groups[MOST_GROUPS:]
        share = sum(group.share for group in rest)
        said.append(f"{others(len(rest))} {percent(share)} of the agents.")
    if len(found.groups) > 1:
        said.append(_how_sure(found))
    return tuple(said)


def _how_many(found: RankedGroups) -> str:
    """Say how many groups there are, and whether they recur."""
    n = len(found.groups)
    data = f"{count_of(found.n_agents, 'agent')} and {count_of(found.n_items, 'item')}"
    if n == 1:
        return f"One group describes all {data}."
    which = [group.found for group in found.groups]
    start = f"{capital(spelled(n))} groups of agents"
    if found.runs < 2 or None in which:
        return f"{start} were found among {data}."
    runs = all_of(found.runs, found.run_name)
    if all(times == found.runs for times in which):
        return f"{start} recur in {runs}, among {data}."
    alone = 1 if found.run_name == "restart" else 0  # a restart finds its own groups
    never = [k for k, times in enumerate(which) if times is not None and times <= alone]
    if len(never) == n:
        return f"{start} are shown, of {data}, and none of them recurs: other {found.run_name}s find others."
    times = [0 if each is None else each for each in which]
    return f"{start} were found among {data}; {how_often(times, found.runs, found.run_name, alone)}."


def group_sentence(found: RankedGroups, k: int) -> str:
    """Say what one group is like."""
    group, names = found.groups[k], [in_a_list(name) for name in found.short]
    order = [names[item] for item in group.order.tolist()]
    share = interval(group.share, group.low, group.high)
    whose = "its members" if len(found.groups) > 1 else "the agents"
    who = f"{capital(found.title(k))}, {share} of the agents: its center"
    top, told = order[: min(MOST_NAMED, found.n_told)], order[: found.n_told]
    then = f", then {listed(top[1:])}" if len(top) > 1 else ""
    if len(told) <= MOST_NAMED + 1:
        rest = " ≻ the rest" if len(told) < found.n_items else ""
        said = f"{who} is {' ≻ '.join(told)}{rest}"
    elif len(order) < found.n_items:
        left = count_of(found.n_items - len(order), "item")
        said = f"{who} ranks {order[0]} first{then}, and leaves out {left}"
    elif len(told) < len(order):
        said = f"{who} ranks {order[0]} first{then}"
    else:
        said = f"{who} ranks {order[0]} first{then}, and {order[-1]} last"
    first = percent(float(found.first[k, group.order[0]]))
    said = f"{said}; {first} of {whose} put {order[0]} first"
    telling = found.telling(k)
    if len(found.groups) == 1:
        return f"{said}."
    if not telling:
        return f"{said}. It orders the items much as the others do."
    places = [
        f"{names[item]} {_place(found, k, item)} ({_place_elsewhere(found, k, item)})" for item in telling
    ]
    return f"{said}. What sets it apart: {listed(places)}.{_nearest(found, k)}"


def _nearest(found: RankedGroups, k: int) -> str:
    """Say which group is most like this one, and where they differ; of few groups all are named already."""
    near = found.nearest(k)
    if len(found.groups) - 1 <= MOST_OTHERS or near is None:
        return ""
    items = found.telling(k, near)
    there = [
        f"{in_a_list(found.short[item])} {_place(found, near, item)} (here {_place(found, k, item)})"
        for item in items
    ]
    apart = f"with {listed(there)}" if there else "with much the same order"
    return f" Most like it is {found.title(near)}, {apart}."


def _place_elsewhere(found: RankedGroups, k: int, item: int) -> str:
    """Say where the centers of the others have an item: of a few each, of many the mean, as in tables."""
    others = [j for j in range(len(found.groups)) if j != k]
    if len(others) > MOST_OTHERS:
        return f"elsewhere {one_digit(float(found.places_elsewhere[k, item]))} on average"
    return ", ".join(f"{_place(found, j, item)} in {found.title(j)}" for j in others)


def _place(found: RankedGroups, k: int, item: int) -> str:
    """Say where a center has an item."""
    if item not in found.groups[k].order:
        return "not ranked"
    place = round(float(found.places[k, item]))
    return ordinal(place) if place <= found.n_told else f"below the first {spelled(found.n_told)}"


def _how_sure(found: RankedGroups) -> str:
    """Say how sure it is who belongs where."""
    sizes = [group.agents for group in found.groups]
    mean = sum(n * group.how_sure for n, group in zip(sizes, found.groups, strict=True)) / max(sum(sizes), 1)
    how = "sure" if mean >= 0.9 else "fairly sure" if mean >= 0.7 else "unsure"
    said = f"Who belongs where is {how}: an agent is in the group shown with probability {percent(mean)}"
    loose = [k for k, group in enumerate(found.groups) if group.agents and group.how_sure < min(0.6, mean)]
    return f"{said} on average{f', and less surely in {named(loose)}' if loose else ''}."


def size_words(found: RankedGroups, k: int) -> str:
    """Tell the share of a group from the number of those who are most probably in it."""
    group = found.groups[k]
    return f"{interval(group.share, group.low, group.high)}; {number(group.agents)} agents most probably"
