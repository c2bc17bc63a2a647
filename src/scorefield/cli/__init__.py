"""The `scorefield` command."""
