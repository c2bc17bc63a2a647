"""`python -m scorefield` is the `scorefield` command."""

from scorefield.cli.app import main

main()
