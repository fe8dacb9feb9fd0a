"""`fieldwarden schema`."""

from __future__ import annotations

import click

from webhook.cli.common import output, print_data


@click.command()
@click.option("--crd", is_flag=True, help="The custom resource's definition instead, as a cluster takes it.")
@output(("json", "yaml"), "json")
def schema(crd: bool, output: str) -> None:
    """Print the JSON Schema of FieldPolicy, for editors and other tools.

    It knows the shape of a policy and describes every key. Paths, globs and sense are the linter's.

    \b
    Examples:
      fieldwarden schema > fieldpolicy.json
      fieldwarden schema --crd | kubectl apply --server-side -f -
      # yaml-language-server: $schema=fieldpolicy.json     (as the first line of a policy)

    Exit codes: 0 printed, 2 wrong use.
    """
    if crd:
        from webhook.cluster.crd import definition as made
    else:
        from webhook.policy import schema as made

    print_data(made(), output)
