"""Which of four layouts a table has: explicit rules, and an error where two layouts would fit.

pairs
    A column for the better and one for the worse item (``better``/``worse``, ``winner``/``loser``,
    ``prefers``/``over`` and the like).
ratings
    An agent column, an item column and a ``rating``/``score``/``stars`` column.
orders
    Columns ``pos1 … post`` (also ``position``, ``place``, ``choice``, ``pref``), ``1st``, ``2nd``, … or
    ``first``, ``second``, …; entries are items.
ranks
    Other columns, one per item, whose rows are all rankings: 1 to k without gaps, or with ties in one of
    the usual ways (1 1 3, 1 1 2, 2 2 3, 1.5 1.5 3). A table of scores from 1 to 5 is not.

Columns called ``rank1 …``, ``X1 …``, ``V1 …`` or by bare numbers say nothing: text in them makes
orders, an entry twice in a row makes ranks, and whole numbers fit both, so the caller must say.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from permix.data.io.column_names import BLANKS, FOREIGN_ORDINAL, FOREIGN_PLACE, LONG_RANKS, plain
from permix.data.io.forms.rank_words import CARDINALS, ORDINALS, rank_of
from permix.data.io.forms.scales import could_be_scale
from permix.data.io.layouts import long_advice, no_items, turning
from permix.data.io.layouts.comparisons import sides_without_winner
from permix.data.io.layouts.notation import open_brackets
from permix.data.io.layouts.questions import entries_of, refuse_several_questions, refuse_several_series
from permix.data.io.marks import codes_among, says_nobody, says_several
from permix.data.io.table_columns import Table, is_blank, missing_mask, numbers
from permix.data.labels import Array, Label, some_names
from permix.errors import Argument, DataError, NotRankings, Part, PermixWarning, Wording

LAYOUTS = ("orders", "ranks", "pairs", "ratings")

_PLACE = f"(?:choice|pick|place|position|preference|pref|pos|{FOREIGN_PLACE})"
_POSITION = re.compile(
    rf"{_PLACE}#?(\d+)\Z|(\d+)(?:st|nd|rd|th){_PLACE}?\Z|({'|'.join(ORDINALS)}){_PLACE}?\Z|"
    rf"{_PLACE}({'|'.join(CARDINALS)})\Z|(\d+)(?:{FOREIGN_ORDINAL})?{_PLACE}\Z|#(\d+)\Z"
)
_RANKS = Argument("layout", "ranks")
_OR_NAME_IT = (", or name it with ", Argument("agent_column"), " or ", Argument("count_column"))
_MANY_ROWS = 20
_MATRIX = (
    "; the matrix is described by --layout long, and permix fit cocluster --layout long finds its groups"
)
_SAYS_NOTHING = re.compile(r"(?:ranking|rank|rang|rango|top|x|v|var|col|column)?(\d+)\Z")
_SCORES = re.compile(r"(?<![^\W_])(rate|rated|ratings?|scores?|points|pts|stars)(?![^\W_])", re.IGNORECASE)
_FOR_NUMBERS = Wording(
    "tables of answers or measurements go to permix.DPMixture",
    "tables of answers or measurements are for permix fit dp-mixture",
)
_FOR_RATINGS = ("ratings (higher is better) with ", Argument("layout", "ratings"))

# Names of columns that say that 1 is the best, though these may be called ratings.
_DOWNWARD = re.compile(
    r"\b1\s*(?:=|is|means)\s*(?:the )?(?:best|most|highest|top|first)|lower is better", re.IGNORECASE
)


def position(name: Label) -> int | None:
    """Place in an ordering that a column name says: ``pos3``, ``3rd`` and ``Third choice`` give 3."""
    match = _POSITION.match(plain(name))
    if match is None:
        return None
    if match[3] or match[4]:
        return ORDINALS.index(match[3]) + 1 if match[3] else CARDINALS.index(match[4]) + 1
    return int(next(filter(None, (match[1], match[2], match[5], match[6]))))


def is_place(name: Label) -> bool:
    """Whether a column name could be a place in an ordering: ``pos3``, ``Third choice``, ``rank3``, ``3``."""
    return position(name) is not None or _SAYS_NOTHING.match(plain(name)) is not None


def refuse_other_columns(table: Table, wide: list[int], named_items: bool) -> None:
    """Refuse columns that hold no items of an ordering beside others that do.

    The names tell where some are names of places and others are not. Where none is, a column tells that
    shares no entry with the others, while those share some; one entry all the way down could be a favorite of
    everybody, unless there are many rows. ``named_items`` says that the caller has listed the items, so that
    a stranger is noticed anyway.
    """
    refuse_several_series(table, wide)
    if not named_items and not any(is_place(table.names[place]) for place in wide):
        refuse_several_questions(table, wide)
    _refuse_the_worst(table, wide)
    # Columns that nobody named are called 1, 2, …, which tells nothing.
    places = [] if table.numbered else [place for place in wide if is_place(table.names[place])]
    others = sorted(set(wide) - set(places))
    why = f"it is not called a place, as {table.names[places[0]]!r} is" if places else ""
    if not places:
        others = [] if named_items else _strangers(table, wide)
        why = "it shares no entry with the others"
    if others:
        names = [table.names[place] for place in others]
        raise DataError(
            f"{table.source}: column {names[0]!r} does not look like a place in an ordering: {why}, and "
            f"its entries ({some_names(entries_of(table, others[0])[:3])}) would become items. Leave it "
            "out with ",
            Argument("ignore", names[0]),
            *_beside(names[0]),
            *_OR_NAME_IT,
            "; if it is a place, ",
            "rename it" if places else Wording("pass items=[...]", "call the columns pos1, pos2, …"),
        )


def _refuse_the_worst(table: Table, wide: list[int]) -> None:
    """Refuse a last column called the worst item, unless the rows list all items: others are between."""
    if table.numbered or not re.match(r"worst|least|bottom|lowest", plain(table.names[wide[-1]])):
        return
    found = {entry for place in wide for entry in entries_of(table, place)}
    if len(found) > len(wide):
        name = table.names[wide[-1]]
        raise DataError(
            f"{table.source}: {name!r} is below the items that a row does not list, and a list of items "
            "puts it above them. Leave it out with ",
            *(Argument("ignore", name), ", or write the whole ranking into a cell, as A>B=C>D"),
        )


def refuse_places_as_items(table: Table, wide: list[int]) -> None:
    """Refuse an ordering whose entries are all places, such as ``1st choice``: its columns are the items."""
    if table.numbered or any(is_place(table.names[place]) for place in wide):
        return
    found = list(dict.fromkeys(entry for place in wide for entry in entries_of(table, place)))
    told = [entry for entry in found if re.search(r"[^\W\d_]", entry) and rank_of(entry) is not None]
    if len(told) > 1 and len(told) >= len(found) - 1:
        raise DataError(
            f"{table.source}: the entries are places, such as {told[0]!r}, so each column is an item; say ",
            *(_RANKS, ", and leave other columns out with ", Argument("ignore")),
        )


def _beside(name: Label) -> tuple[Part, ...]:
    return ", keep it beside the votes with ", Argument("group_columns", [name])


def _strangers(table: Table, wide: list[int]) -> list[int]:
    if len(wide) < 3 or table.n_rows < 2:
        return []
    found = {place: set(entries_of(table, place)) for place in wide}
    # In few lines without a header, a column of ids has a different entry in each.
    least = table.n_rows if table.numbered else 2
    alone = [
        place
        for place in wide
        if (len(found[place]) >= least or table.n_rows >= _MANY_ROWS)
        and not any(found[place] & found[other] for other in wide if other != place)
    ]
    return alone if len(alone) <= len(wide) - 2 else []


def detect_layout(table: Table, agent: int | None, wide: list[int], called: Sequence[str] = ()) -> str:
    """Name the layout of a table; ``wide`` are the columns that are no agent, count or mark.

    ``called`` are the names of all columns as the file has them, such as ``Question [Item]``.
    """
    if table.places("better") and table.places("worse"):
        return "pairs"
    if agent is not None and table.places("item") and table.places("rating"):
        return "ratings"
    if not wide:
        raise DataError(f"{table.source}: no columns are left to read rankings from")
    names = [table.names[place] for place in wide]
    positions = [position(name) for name in names]
    if None not in positions:
        return "orders"
    if any(positions):
        first = next(name for name, place in zip(names, positions, strict=True) if place)
        odd = names[positions.index(None)]
        others = [place for place in wide if table.names[place] != odd]
        if wide[positions.index(None)] in table.places("item") and all(
            numbers(table.columns[place]) is not None for place in others
        ):
            raise DataError(
                f"{table.source}: a row for each item, with how often it was given each place, as it seems: "
                "that does not say who ranked what; write a row for each ballot"
            )
        raise DataError(
            f"{table.source}: some columns are places in an ordering ({first!r}), but {odd!r} is not; "
            "leave it out with ",
            Argument("ignore", odd),
            *_beside(odd),
            *_OR_NAME_IT,
        )
    if table.numbered and _could_be_ratings(table):
        more = " and a time" if len(table.names) == 4 else ""
        raise NotRankings(
            "ratings",
            f"{table.source}: lines without a header that look like agent, item, rating{more}; say ",
            *(Argument("layout", "ratings"), " to compare what each agent rated"),
            Wording(", or read the matrix with permix.read_cells(path, layout='long')", _MATRIX),
        )
    values = [numbers(table.columns[place]) for place in wide]
    text = [place for place, column in zip(wide, values, strict=True) if column is None]
    says_nothing = all(_SAYS_NOTHING.match(plain(name)) for name in names)
    if says_nothing and text:
        return "orders"
    if len(wide) > 1 and could_be_scale(table, wide):
        raise NotRankings(
            "text",
            f"{table.source}: the entries are words of a scale, such as {entries_of(table, wide[0])[0]!r}. "
            "If the columns are items that were rated, say ",
            *(Argument("layout", "ratings"), "; ", _FOR_NUMBERS),
        )
    if text:
        if sides := sides_without_winner(table):
            raise DataError(
                f"{table.source}: {sides[0]!r} and {sides[1]!r} could be the two sides of comparisons, and "
                "no column is called as one of winners is; call it 'winner'"
            )
        turning.refuse_turned_around(table, wide, text)
        _refuse_boxes(table, wide)
        _refuse_one_list(table, text)
        unclear = _looks_long(table) or _could_be_orders(table, wide, text)
        looks_like = "" if unclear else "text"
        raise NotRankings(looks_like, f"{table.source}: ", *_why_text_is_no_ranks(table, wide, text))
    ranks = np.column_stack([column for column in values if column is not None])
    if says_nothing and not _repeats(ranks) and not np.any((ranks < 0) | (np.floor(ranks) < ranks)):
        raise DataError(
            f"{table.source}: columns {', '.join(map(repr, names[:2]))}, … of whole numbers could be "
            "orders (column = place, entry = item) or ranks (column = item, entry = its rank); say ",
            *(Argument("layout", "orders"), " or ", _RANKS),
        )
    if len(wide) > 1 and all(turning.AGENTS.fullmatch(plain(name)) for name in names):
        turning.refuse_numbered_agents(table)
    bad = first_row_that_is_no_ranking(ranks)
    if bad is None:
        _refuse_scores(table, wide, called)
        no_items.refuse_a_stranger(table, wide, ranks)
        _refuse_ranks_from_0(table, ranks)
        return "ranks"
    _refuse_one_that_is_no_rank(table, wide, ranks)
    possible = not np.any((ranks < 0) | (ranks > len(wide)))
    otherwise = ("ranks (1 = best) that count in another way are read with ", _RANKS, "; ")
    raise NotRankings(
        "numbers",
        f"{table.where(bad)}: these numbers are not a ranking from 1 on: ",
        *(otherwise if possible else ()),
        *(*_FOR_RATINGS, "; ", _FOR_NUMBERS),
        ". A column that counts or names agents is set apart with ",
        *(Argument("count_column"), " or ", Argument("agent_column")),
        *(", a number that stands for no answer is named with ", Argument("missing")),
        *((". If each row is one statement: ", *_long_advice(table)) if _looks_long(table) else ()),
    )


def _refuse_boxes(table: Table, wide: list[int]) -> None:
    """Refuse columns in which one word or sign stands, or nothing, as where boxes were checked."""
    found = {entry for place in wide for entry in entries_of(table, place)}
    if len(found) == 1 and len(wide) > 1:
        raise DataError(
            f"{table.source}: nothing but {next(iter(found))!r} stands in the columns, as where boxes are "
            "checked; write 1 for it and 0 where a box is left open: what is 1 is then above what is 0"
        )


# Names of columns that say that 1 is not the best.
_UPWARD = re.compile(
    r"\b(?:[2-9]|1[0-9])\s*(?:=|is|means)\s*(?:the )?(?:best|most|highest|top)|"
    r"\b1\s*(?:=|is|means)\s*(?:the )?(?:worst|least|lowest|bottom)|higher is better",
    re.IGNORECASE,
)


def _refuse_scores(table: Table, wide: list[int], called: Sequence[str]) -> None:
    """Ask about columns whose names all say that they hold scores, though these could be ranks."""
    found = []
    for name in (str(table.names[place]) for place in wide):
        whole = [old for old in called if old == name or old.endswith((f"[{name}]", f" {name}"))] or [name]
        if not all(_SCORES.search(old) or _UPWARD.search(old) for old in whole):
            return
        found.append(whole[0])
    raise DataError(
        f"{table.source}: every row could be a ranking, but {found[0]!r} says that these are scores. If the "
        "highest is the best, say ",
        *(Argument("layout", "ratings"), "; if 1 is the best, ", _RANKS),
    )


def _refuse_ranks_from_0(table: Table, ranks: Array) -> None:
    """Ask about rows that all hold 0 to k - 1, which may be ranks, scores, or leave one item out."""
    k = ranks.shape[1]
    if not np.isnan(ranks).any() and np.all(np.sort(ranks, axis=1) == np.arange(k)):
        raise DataError(
            f"{table.source}: every row holds the numbers 0 to {k - 1}. If 0 says that an item is not ranked",
            *(", say ", _RANKS, "; if these are scores, of which the highest is the best, "),
            *(Argument("layout", "ratings"), "; if 0 is the best rank, add 1 to all"),
        )


def refuse_ratings_downward(table: Table, wide: list[int], called: Sequence[str]) -> None:
    """Refuse ratings of columns whose names say that 1 is the best: of ratings the highest is."""
    names = [str(table.names[place]) for place in wide]
    names += [old for old in called if old.endswith(tuple(f"[{name}]" for name in names))]
    told = next((name for name in names if _DOWNWARD.search(name)), None)
    if told is not None:
        raise DataError(
            f"{table.source}: {told!r} says that the lowest number is the best, and of ratings the highest "
            "is: name all numbers, best first, with ",
            *(Argument("categories"), ", or, if the highest is the best, call the columns otherwise"),
        )


def refuse_few_columns(table: Table, wide: list[int]) -> None:
    """Refuse ratings without a column for the items, and without several columns that could be items."""
    if len(wide) < 2 or (len(table.names) == 3 and len(wide) == 2 and _looks_long(table)):
        raise DataError(
            f"{table.source}: no column for the item; the columns are {', '.join(map(repr, table.names))}; "
            "call one of them 'item'"
        )


def _refuse_one_that_is_no_rank(table: Table, wide: list[int], ranks: Array) -> None:
    """Name the one column without which all rows are rankings."""
    if len(wide) < 3:
        return
    positive = np.all(np.isnan(ranks) | (ranks >= 0), axis=0)
    whole = np.all(np.isnan(ranks) | (np.floor(ranks) == ranks), axis=0)
    beyond = np.nanmax(ranks, axis=0, initial=0) > len(wide)
    for at in np.flatnonzero(positive & (beyond | ~whole))[:1].tolist():
        if first_row_that_is_no_ranking(np.delete(ranks, at, axis=1)) is None:
            name = table.names[wide[at]]
            count = Argument("count_column", name)
            counts = (
                ("If it counts agents, say ", count)
                if whole[at]
                else ("Counts are whole numbers, and weights of a survey are not read",)
            )
            raise DataError(
                f"{table.source}: all columns but {name!r} are ranks. ",
                *(*counts, "; if it names them, ", Argument("agent_column", name)),
                *("; otherwise leave it out with ", Argument("ignore", name)),
            )


def _could_be_ratings(table: Table) -> bool:
    """Whether lines hold two ids, of which no pair comes back, and one of few values."""
    if len(table.names) not in (3, 4) or table.n_rows < _MANY_ROWS:
        return False
    first, second, third = (column.tolist() for column in table.columns[:3])
    few = len(set(third)) <= 21 and numbers(table.columns[2]) is not None
    back = len(set(first)) < len(first) and len(set(second)) < len(second)
    n_pairs = len(set(zip(first, second, strict=True)))
    wide_range = max(len(set(first)), len(set(second))) > len(set(third))
    return few and back and wide_range and n_pairs >= 0.95 * table.n_rows


def _why_text_is_no_ranks(table: Table, wide: list[int], text: list[int]) -> tuple[Part, ...]:
    """Parts of a message about text in columns whose names say nothing about their role."""
    if _looks_long(table):
        said = "each row seems to be one statement, but the column names do not say so: "
        return said, *_long_advice(table)
    several = _several_boxes(table, text[0])
    if several:
        return (
            f"column {table.names[text[0]]!r} holds answers such as {several!r}, as where several boxes can "
            "be checked: what is checked is in no order. Make a column for each box, 1 where it is checked "
            "and 0 where it is not, and read them with ",
            Argument("layout", "ratings"),
        )
    held = (
        f"column {table.names[text[0]]!r} holds text, so the columns are not ranks of items, and they are "
        "not called pos1, pos2, … as places of an ordering are"
    )
    if _could_be_orders(table, wide, text):
        return f"{held}; say ", Argument("layout", "orders"), " if each row lists items, best first"
    first, *others = wide
    if text == [first] and others and len(entries_of(table, first)) == table.n_rows > 1:
        name = table.names[first]
        return (
            f"column {name!r} holds a different text in each row. If it names the agents, say ",
            *(Argument("agent_column", name), "; if it names items, which the other columns rank or rate, "),
            *("turn the table around with ", Argument("transpose", True), "; "),
            _FOR_NUMBERS,
        )
    names = [str(table.names[place]) for place in text]
    left_out = Argument("ignore", names if len(names) > 1 else names[0])
    said = f"this does not look like rankings: {held}"
    if len(text) < len(wide):
        return (
            f"{said}. If the other columns are ranks, say ",
            *(_RANKS, Wording(", ", " "), left_out),
            *("; if they are ratings, of which the highest is the best, ", Argument("layout", "ratings")),
            *(Wording(", ", " "), left_out, "; "),
            _FOR_NUMBERS,
        )
    return f"{said}; ", _FOR_NUMBERS


_SAYS_RANKING = re.compile(r"\b(?:rank|ranking|ranked|best first|in order|order of)\b", re.IGNORECASE)


def _refuse_one_list(table: Table, text: list[int]) -> None:
    """Ask about the one column of lists that says that it ranks: of boxes, what is checked is in no order."""
    for place in text:
        said = _several_boxes(table, place)
        if said and _SAYS_RANKING.search(str(table.names[place])):
            others = [name for at, name in enumerate(table.names) if at != place]
            raise DataError(
                f"{table.source}: column {table.names[place]!r} holds answers such as {said!r}: if each is a "
                "ranking, best first, say ",
                *(
                    Argument("layout", "orders"),
                    *((" and ", Argument("ignore", others)) if others else ()),
                ),
                "; if boxes were checked, in no order, make a column for each box, 1 where it is checked and "
                "0 where it is not, and read them with ",
                Argument("layout", "ratings"),
            )


def _several_boxes(table: Table, place: int) -> str | None:
    """Return an answer that lists others, where most answers are such lists of a few boxes."""
    said = [str(entry) for entry in table.columns[place][~missing_mask(table.columns[place])]]
    for mark in ",;|":
        lists = [[part.strip() for part in entry.split(mark) if part.strip()] for entry in said]
        boxes = Counter(part for parts in lists for part in set(parts))
        longer = [entry for entry, parts in zip(said, lists, strict=True) if len(set(parts)) > 1]
        once = all(len(set(parts)) == len(parts) for parts in lists)
        if once and 2 * len(longer) > len(said) and len(boxes) > 1 and min(boxes.values()) > 1:
            return longer[0]
    return None


def _looks_long(table: Table) -> bool:
    """Whether rows seem to be single statements of agents who come back."""
    if table.places("item") and any(plain(name) in LONG_RANKS for name in table.names):
        return True
    if len(table.names) != 3:
        return long_advice.item_of_ratings(table) is not None
    first = [str(entry) for entry in table.columns[0][~missing_mask(table.columns[0])]]
    return len(set(first)) < len(first)


def long_rank(table: Table, agent: int | None) -> int | None:
    """Return the column of ranks of a table with a line for each item that an agent ranked."""
    found = [place for place, name in enumerate(table.names) if plain(name) in LONG_RANKS]
    if agent is None or len(found) != 1 or len(table.places("item")) != 1 or table.places("rating"):
        return None
    return found[0]


def _long_advice(table: Table) -> tuple[Part, ...]:
    names = [str(name) for name in table.names]
    ranked = [name for name in names if plain(name) in LONG_RANKS]
    downward = next((name for name in names if _DOWNWARD.search(name)), None)
    if downward is not None:
        return (
            f"{downward!r} says that 1 is the best, so it holds ranks: call the columns agent, item, rank",
        )
    if ranked:
        return (
            f"{ranked[0]!r} may hold the rank of one item: call the columns agent, item and rank, or say "
            "which names the agents with ",
            Argument("agent_column"),
        )
    return long_advice.to_rename(table)


def _could_be_orders(table: Table, wide: list[int], text: list[int]) -> bool:
    """Whether rows of text list different items, some of which stand in more than one column."""
    if len(text) < len(wide):
        return False
    columns = [table.columns[place] for place in wide]
    for row in zip(*columns, strict=True):
        listed = [entry for entry in row if not is_blank(entry)]
        if len(set(listed)) < len(listed):
            return False
    found = [set(column[~missing_mask(column)]) for column in columns]
    return table.n_rows == 1 or len(set().union(*found)) < sum(map(len, found))


def ordered_places(table: Table, wide: list[int]) -> list[int]:
    """Columns of an ordering in the order of their numbers, which must run from 1 if the file has them."""
    if table.numbered:
        return wide
    first_called, last_called = (plain(table.names[place]) for place in (wide[0], wide[-1]))
    if re.match("worst|least|last|bottom|lowest", first_called) and re.match(
        "best|most|first|top|highest", last_called
    ):
        raise DataError(
            f"{table.source}: the columns go from {table.names[wide[0]]!r} to {table.names[wide[-1]]!r}, but "
            "an ordering lists the best first; turn the columns around"
        )
    number: list[int] = []
    for place in wide:
        name = table.names[place]
        at = position(name)
        if at is None:
            match = _SAYS_NOTHING.match(plain(name))
            if match is None:
                return wide  # the caller said layout="orders": columns as they stand
            at = int(match.group(1))
        number.append(at)
    placed = sorted(zip(number, wide, strict=True))
    first = placed[0][0]
    if [place for place, _ in placed] != list(range(first, first + len(wide))) or first > 1:
        raise DataError(
            f"{table.source}: the places of the ordering are {', '.join(map(str, sorted(number)))}; they "
            "must run from 1 without a gap"
        )
    return [column for _, column in placed]


# Marks of counting machines, which rules of ballots read.
_OF_MACHINES = re.compile(r"undervoted?|skipped(rank)?|exhausted")
_JOINED = re.compile(BLANKS + r"[=/&+~,;|]\s*")


def without_nobody(table: Table, places: list[int]) -> Table:
    """Blank words that say that nobody is listed, where they end a row; refuse marks, and ties in a cell."""
    columns = {place: table.columns[place] for place in places}
    entries = {entry for column in columns.values() for entry in column.tolist() if isinstance(entry, str)}
    _refuse_marks_and_ties(table, columns, entries)
    nobody = {entry for entry in entries if says_nobody(entry)}
    for code in codes_among(entries - nobody):
        if float(code) != 0:
            place, row = next(
                (at, column.tolist().index(code)) for at, column in columns.items() if code in column
            )
            raise DataError(
                f"{table.where(row)}, column {table.names[place]!r}: {code!r} stands among names and may say "
                "that nobody is listed: say ",
                *(Argument("missing", code), ", or call the item otherwise"),
            )
        nobody.add(code)
    nobody -= {entry for entry in nobody if _is_listed_by_all(columns, places, entry)}
    if not nobody:
        return table
    ends = np.zeros(table.n_rows, dtype=np.bool_)  # whether an item stands at a later place
    changed = dict(columns)
    for place in reversed(places):
        column = columns[place]
        says = np.array([entry in nobody if isinstance(entry, str) else False for entry in column.tolist()])
        if np.any(says & ends):
            row = int(np.argmax(says & ends))
            raise DataError(
                f"{table.where(row)}, column {table.names[place]!r}: {column[row]!r} stands before another "
                "item; if it is no item, leave such places blank and close the gap, or call the columns "
                "rank1, rank2, … and it is read as a rank that was skipped"
            )
        ends |= ~says & ~missing_mask(column)
        if says.any():
            changed[place] = column.astype(object)
            changed[place][says] = None
    said = f"{table.source}: {', '.join(map(repr, sorted(nobody)[:3]))} at the end of rows is read as no item"
    warnings.warn(f"{said}; call the item otherwise if it is one", PermixWarning, stacklevel=5)
    return table._replace(columns=[changed.get(place, column) for place, column in enumerate(table.columns)])


def _is_listed_by_all(columns: dict[int, Array], places: list[int], entry: str) -> bool:
    """Whether every row lists an entry once, some before another: then it is an item."""
    here = np.column_stack([columns[place] == entry for place in places])
    given = np.column_stack([~missing_mask(columns[place]) for place in places])
    before = np.any(here[:, :-1] & given[:, 1:])
    return bool(np.all(here.sum(axis=1) == 1) and before)


def joined_items(entries: Collection[str]) -> set[str]:
    """Return the entries that are several others in one: ``Ann/Bo`` where Ann and Bo stand alone, too."""
    return {
        entry
        for entry in entries
        if len(parts := _JOINED.split(entry)) > 1 and all(part in entries for part in parts)
    }


def _refuse_marks_and_ties(table: Table, columns: dict[int, Array], entries: set[str]) -> None:
    halves = {entry for entry in entries if entry[:1] in "([{" and open_brackets(entry)}
    for place, column in columns.items() if halves else ():
        for row in np.flatnonzero([entry in halves for entry in column.tolist()]).tolist()[:1]:
            raise DataError(
                f"{table.where(row)}, column {table.names[place]!r}: {column[row]!r} is one of several in "
                "brackets, as it seems, which are tied; write the ranking into one cell, as A=B>C"
            )
    marks = {entry for entry in entries if says_several(entry) or _OF_MACHINES.fullmatch(plain(entry))}
    joined = joined_items(entries)
    for place, column in columns.items():
        for row, entry in enumerate(column.tolist() if marks or joined else ()):
            where = f"{table.where(row)}, column {table.names[place]!r}: {entry!r}"
            if entry in marks:
                raise DataError(
                    f"{where} is a mark, not an item. Call the columns rank1, rank2, … and let permix find "
                    "the layout: then marks are read by rules, and other columns are set apart (without ",
                    *(Argument("layout"), " and ", Argument("ignore"), ")"),
                )
            if entry in joined:
                raise DataError(
                    f"{where} seems to be a tie of items that stand alone elsewhere; write the ranking into "
                    "one cell, as A=B>C, or ranks into a column for each item"
                )


def _repeats(values: Array) -> bool:
    """Whether some row holds the same number twice, other than 0 and blank."""
    ascending = np.sort(values, axis=1)
    return bool(np.any((ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] != 0)))


def first_row_that_is_no_ranking(values: Array) -> int | None:
    """First row whose numbers (0 and NaN = not ranked) break the convention for ties that fits most rows."""
    from scipy.stats import rankdata

    ranks = np.where(np.isnan(values) | (values == 0), np.inf, values)  # not ranked: behind all others
    ranked = np.isfinite(ranks)
    failing = [
        np.any(ranked & (ranks != rankdata(ranks, method=method, axis=1)), axis=1)
        for method in ("min", "max", "average", "dense")
    ]
    best = min(failing, key=lambda rows: int(rows.sum()))
    return int(np.argmax(best)) if best.any() else None
