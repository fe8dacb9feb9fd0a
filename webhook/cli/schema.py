"""`fieldwarden schema`."""

from __future__ import annotations

import click

from webhook.cli.common import output, print_data


@click.command()
@output(("json", "yaml"), "json")
def schema(output: str) -> None:
    """Print the JSON Schema of FieldPolicy, for editors and other tools.

    It knows the shape of a policy and describes every key. Paths, globs and sense are the linter's.

    \b
    Examples:
      fieldwarden schema > fieldpolicy.json
      # yaml-language-server: $schema=fieldpolicy.json     (as the first line of a policy)

    Exit codes: 0 printed, 2 wrong use.
    """
    from webhook.policy import schema as made

    print_data(made(), output)
