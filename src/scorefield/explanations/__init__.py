"""Why rows are classified as they are: scores of the posterior, attributions, distances, counterfactuals."""
