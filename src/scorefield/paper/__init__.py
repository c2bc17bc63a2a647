"""The experiments of the paper: each a function from (seed, config) to rows, and a section drawn from rows alone."""
