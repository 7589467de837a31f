"""What the columns of tables are usually called."""

from __future__ import annotations

import re
from collections.abc import Sequence

from permix.data.labels import Label

# Blanks before something that is searched for. Where a run of blanks is followed by something else, a search
# for ``\s*x`` would begin anew at each of them, in time that grows with their square.
BLANKS = r"(?:(?<!\s)\s++)?"


def plain(name: Label) -> str:
    """Column name in lower case without blanks, dots, dashes and underscores."""
    return re.sub(r"[\s._-]", "", str(name)).lower()


def _with_ids(*names: str) -> frozenset[str]:
    return frozenset(names) | {f"{name}id" for name in names}


# Compared after `plain`.
USUAL_NAMES = {
    "agent": _with_ids(
        *("agent", "assessor", "customer", "judge", "participant", "person", "rater", "respondent"),
        *("reviewer", "subject", "user", "voter", "annotator", "evaluator", "labeler"),
        *("grader", "marker", "panelist", "panellist", "examiner", "juror", "coder", "taster", "tester"),
        *("student", "employee", "member", "wähler", "teilnehmer", "votant", "électeur"),
        *("répondant", "électrice", "votante", "encuestado", "elettore", "kiezer", "person", "befragter"),
    )
    | {"castvoterecord", "sysrespnum", "respnum", "respid", "resp", "ballotid", "responseid"}
    | {"ballotpaperid", "voteid", "paperid"},
    "item": _with_ids(
        *("alternative", "alt", "book", "candidate", "comment", "film", "item", "joke", "movie", "object"),
        *("option", "product", "song", "statement"),
    )
    | {"candidatename", "itemname", "optionname", "productname", "moviename"},
    "rating": frozenset(["grade", "points", "rating", "score", "stars", "value", "vote"]),
    "better": frozenset(["better", "chosen", "preferred", "prefers", "topitem", "winner"]),
    "worse": frozenset(["bottomitem", "loser", "over", "rejected", "worse"]),
    "count": frozenset(["ballots", "count", "counts", "freq", "frequency", "multiplicity", "n", "votes"])
    | {
        "nagents",
        "nvoters",
        "weight",
        "weights",
        "numberofballots",
        "numberofvotes",
        "numberofvoters",
        "anzahl",
    },
    "unlisted": frozenset(["unlisted"]),
}
# Taken for the agent where no column has a name that says more: the first may be what was answered.
_PERHAPS_AGENT = (frozenset(["ballot", "response"]), frozenset(["id", "name", "#"]))
# What a place in an ordering is called in German, French, Spanish, Portuguese, Italian and Dutch, and what
# stands after its number there: ``1er choix``, ``2ª opción``. Compared after `plain`.
FOREIGN_PLACE = (
    "wahl|platz|präferenz|priorität|priorité|prioridad|prioridade|priorità|prioriteit|choix|préférence|preferencia|preferência|preferenza|voorkeur|opci[óo]n|elecci[óo]n|"
    "op[çc][ãa]o|escolha|scelta|keuze"
)
FOREIGN_ORDINAL = "er|ère|ere|re|nde|[eè]me|ième|e|[ªº°]"
LONG_RANKS = frozenset(["level", "place", "position", "rank", "preference", "preferencenumber"])
# What columns are called that hold a whole ranking in each cell.
LISTS = frozenset(
    [
        *("ranking", "rankings", "ballot", "ballots", "order", "orders", "ordering", "preferences", "list"),
        *("votes", "vote", "choices", "ranks", "ranked", "preference", "answer", "response"),
    ]
)
# What is known of agents beside what they say.
ABOUT_AGENTS = frozenset(
    [
        *("precinct", "district", "ward", "town", "city", "county", "region", "state", "country", "age"),
        *("gender", "sex", "date", "time", "timestamp", "party", "language"),
    ]
)
# The same and numbers of rows: columns beside ranks, ratings or cells that are hardly ever items.
HARDLY_ITEMS = ABOUT_AGENTS | frozenset(
    [
        *("zip", "zipcode", "postcode", "postalcode", "agegroup", "yearofbirth", "birthyear", "yob"),
        *("education", "income", "occupation", "ethnicity", "race", "religion", "maritalstatus", "duration"),
        *("household", "householdsize", "year", "month", "wave", "cohort", "case", "caseid", "caseno", "row"),
        *("rowid", "rownumber", "no", "nr", "index", "serial", "serialno", "recordid", "recordno"),
        *("married", "urban", "rural", "treated", "treatment", "control", "cluster", "ideology", "female"),
        *("male", "incomebracket", "incomegroup", "agebracket", "stratum", "strata", "psu"),
        *("alter", "geschlecht", "âge", "sexe", "edad", "sexo", "età", "sesso", "idade"),
    ]
)


def column_places(names: Sequence[Label], role: str) -> list[int]:
    """Places of the columns that have a role: the one called so, else those with a usual name for it."""
    plain_names = [plain(name) for name in names]
    steps = [frozenset([role]), USUAL_NAMES[role]]
    if role == "agent":
        steps += _PERHAPS_AGENT
    for called in steps:
        places = [place for place, name in enumerate(plain_names) if name in called]
        if places:
            return places
    return []
