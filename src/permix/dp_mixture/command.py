"""The command ``permix fit dp-mixture``."""

from __future__ import annotations

from permix.cli.command import Answering, ModelCommand, Option
from permix.dp_mixture.parameters import DPMixtureParameters
from permix.dp_mixture.table_source import TABLES
from permix.registries import FAMILIES, PRIORS, Registry


def settings_of(registry: Registry) -> dict[str, Option]:
    """Return an option for every setting of every class of a registry.

    Its help says to whom it belongs, once where it means the same to all.
    """
    options: dict[str, Option] = {}
    told: dict[str, dict[str, list[str]]] = {}
    for name, entry in registry.entries.items():
        for setting, about in entry.settings.items():
            default = f" [default: {about.default}]" if about.default else ""
            told.setdefault(setting, {}).setdefault(about.help + default, []).append(name)
            text = "; ".join(f"{', '.join(names)}: {help_}" for help_, names in told[setting].items())
            first = options.get(setting, about)
            options[setting] = Option(first.type, f"{text}.", first.flags)
    return options


COMMAND = ModelCommand(
    name="dp-mixture",
    help="""Find groups, without being told how many, in a table of numbers, counts and categories.

    While it runs, the chains are kept in the folder OUTPUT.chains: killed at any moment, the same command
    goes on.
    """,
    examples=(
        "permix fit dp-mixture points.csv -o points.permix",
        "permix fit dp-mixture patients.csv --id who --column visits=count -o p.permix",
    ),
    parameters=DPMixtureParameters,
    source=TABLES,
    options={
        "family": Option(
            str,
            f"What a group is made of [default: {next(iter(FAMILIES))}; mixed if some columns are no numbers "
            "or cells are missing].",
            choices=tuple(FAMILIES),
        ),
        "kinds": Option(
            list[str],
            "mixed: what a column is (number, count, category, ordered), rather than what it looks like; may "
            "be repeated.",
            ("--column",),
            metavar="NAME=KIND",
        ),
        **settings_of(FAMILIES),
        "prior": Option(
            str,
            "Prior over partitions: a mixture of finite mixtures (mfm), a Dirichlet process, a Pitman–Yor "
            f"process, or a given number of groups [default: {next(iter(PRIORS))}].",
            choices=tuple(PRIORS),
        ),
        **settings_of(PRIORS),
    },
    labels="Also write each row's group and how sure that is to this CSV file.",
    answers={
        "groups": Answering(),
        "score": Answering(),
        "checks": Answering(("samples", "seed"), needs_data=False),
    },
    draws=True,
)
