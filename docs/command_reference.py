"""Sphinx extension: writes every command and option of ``permix`` to reference/generated/commands.md.

The page is made from the program, so it cannot fall behind it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Write the page before Sphinx reads its sources."""
    app.connect("builder-inited", lambda app: write_commands(Path(app.srcdir) / "reference" / "generated"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_commands(folder: Path) -> None:
    """Write ``commands.md``, one section for each command."""
    import typer

    from permix.cli.app import build

    folder.mkdir(parents=True, exist_ok=True)
    root = typer.main.get_command(build())
    sections = [section(name, command) for name, command in commands("permix", root)]
    (folder / "commands.md").write_text("\n".join(sections), encoding="utf-8")


def commands(name: str, command: Any) -> list[tuple[str, Any]]:
    """List the commands below a group, with their full names."""
    if not hasattr(command, "commands"):
        return [(name, command)]
    found = []
    for word, inner in command.commands.items():
        found += commands(f"{name} {word}", inner)
    return found


def section(name: str, command: Any) -> str:
    """Describe one command in Markdown."""
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    metavars = [a.metavar or a.name.upper() for a in arguments]
    usage = " ".join(
        [name, *(m if a.required else f"[{m}]" for m, a in zip(metavars, arguments, strict=True))]
    )
    lines = [f"### `{name}`", "", "```text", f"{usage} [OPTIONS]", "```", "", command.help or "", ""]
    if command.epilog:
        lines += [command.epilog, ""]
    lines += ["| argument or option | meaning | default |", "|---|---|---|"]
    lines += [row(f"`{m}`", a) for m, a in zip(metavars, arguments, strict=True)]
    lines += [
        row(", ".join(f"`{form}`" for form in sorted(o.opts, key=len, reverse=True)), o) for o in options
    ]
    return "\n".join([*lines, ""])


def row(shown: str, parameter: Any) -> str:
    """One line of a table of options; a default named in the help text moves to its own column."""
    text = (parameter.help or "").replace("|", "\\|")
    told = re.search(r" \[default: ([^\]]*)\]\.?$", text.rstrip("."))
    if told:
        text, default = text[: told.start()].rstrip(".") + ".", told[1]
    elif parameter.required:
        default = "required"
    elif parameter.default is None or parameter.default is False or callable(parameter.default):
        default = ""
    else:
        default = f"`{parameter.default}`"
    return f"| {shown} | {text} | {default} |"
