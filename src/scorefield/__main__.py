"""`python -m scorefield` is the `scorefield` command."""

from scorefield.cli import main

main()
