"""compare_tables on tables whose difference is known."""

import pandas as pd

from scorefield import compare_tables


def test_very_large_values_are_compared(rng):
    """Squares of 1e200 overflow; a column that is scaled by infinity would look the same in every table."""
    real, near, far = (pd.DataFrame(shift + rng.normal(size=(200, 1)), columns=["a"]) for shift in (0, 0, 5))
    assert compare_tables(1e200 * real, 1e200 * near).auc < 0.65
    assert compare_tables(1e200 * real, 1e200 * far).auc > 0.95
