"""Over-samplers and generative classifiers on 22 real imbalanced tables, by a protocol that could refute ours."""
