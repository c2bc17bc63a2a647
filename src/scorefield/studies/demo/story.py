"""The demonstration from end to end: one line per stage, and a page."""

import time

from scorefield.evaluation.ranks import corrected_share
from scorefield.evaluation.remedies import NOTHING
from scorefield.studies.demo.page import TEST_SHARE, named, write_page
from scorefield.studies.demo.penguins import (
    CLASSIFIER,
    KEPT,
    RARE,
    TARGET,
    TAUGHT,
    Settings,
    compare,
    describe,
    generate,
)


def tell(folder, *, say, settings=None, progress=lambda done, total: None):
    """Run the demonstration, `say` a line per stage, and return the path of its page.

    Parameters
    ----------
    folder : path
        Where `index.html` is written.
    say : callable
        Takes a line of text.
    settings : None or Settings
    progress : callable
        Takes the number of finished splits and the number of all.
    """
    settings, start = settings or Settings(), time.perf_counter()
    penguins, description = describe()
    gaps, kinds = int(penguins.isna().to_numpy().sum()), len({row["kind"] for row in description.rows})
    say(f"1/5 table     {len(penguins)} penguins, {penguins.shape[1]} columns of {kinds} kinds, {gaps} empty cells")
    whole = int((penguins[TARGET] == RARE).sum())
    say(f"2/5 generate  {RARE}, thinned from {whole} rows to {KEPT}; the first fit compiles for some seconds")
    generated = generate(penguins, settings)
    judged = generated.against_unseen.sentences[-2]
    say(f"3/5 judge     {len(generated.rows)} new rows in {generated.seconds:.0f} s. {judged}")
    say(f"4/5 compare   {settings.n_splits} splits: learners alone, after over-sampling, and taught")
    rows = []
    for seed in range(settings.n_splits):
        progress(seed, settings.n_splits)
        rows += compare(penguins, seed, settings)
    progress(settings.n_splits, settings.n_splits)
    for line in _lines(rows):
        say("              " + line)
    path = write_page(folder / "index.html", penguins, description, generated, rows)
    say(f"5/5 page      {path} ({time.perf_counter() - start:.0f} s in all)")
    return path


def _lines(rows):
    """Brier scores of the main arms."""
    for learner, remedy in (("boosting", NOTHING), ("boosting", TAUGHT), (CLASSIFIER, NOTHING)):
        found = [row["brier"] for row in rows if (row["learner"], row["remedy"]) == (learner, remedy)]
        yield f"Brier score of {RARE}, {named(learner, remedy)}: {corrected_share(found, TEST_SHARE)}"
