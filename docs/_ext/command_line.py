"""`.. command-line:: module:app` documents a typer app: a section per command, made from its own help."""

import importlib
import re

import typer
from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def commands_of(command, name):
    """(full name, command) of a command and of those below it, in the order of the help."""
    below = getattr(command, "commands", {})
    found = [] if below else [(name, command)]
    for key, part in below.items():
        found += commands_of(part, f"{name} {key}")
    return found


def usage_and_parameters(name, command):
    """The usage line, and (names, help) of each argument and option."""
    context = command.context_class(command, info_name=name)
    records = [parameter.get_help_record(context) for parameter in command.params]
    return command.get_usage(context).removeprefix("Usage: "), [record for record in records if record]


def marked_up(text):
    """Inline nodes of help text, whose [b]bold[/b] parts are commands and values."""
    parts = re.split(r"\[b\](.*?)\[/b\]", text)
    return [nodes.literal(part, part) if i % 2 else nodes.Text(part) for i, part in enumerate(parts)]


def definition(names, text):
    term = nodes.term("", "", nodes.literal(names, names))
    return nodes.definition_list_item("", term, nodes.definition("", nodes.paragraph("", "", *marked_up(text))))


def section_of(name, command):
    usage, parameters = usage_and_parameters(name, command)
    section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
    section += nodes.title(name, name)
    section += [nodes.paragraph("", "", *marked_up(" ".join(part.split()))) for part in command.help.split("\n\n")]
    section += nodes.literal_block(usage, usage, language="none")
    section += nodes.definition_list("", *(definition(*record) for record in parameters), classes=["options"])
    return section


class CommandLine(SphinxDirective):
    required_arguments = 1

    def run(self):
        module, name = self.arguments[0].split(":")
        app = typer.main.get_command(getattr(importlib.import_module(module), name))
        return [section_of(*found) for found in commands_of(app, module.partition(".")[0])]


def setup(app):
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
