"""`python -m scorefield` is the `scorefield` command."""

from scorefield.cli.main import main

main()
