"""Seconds of `import scorefield` and of its first use, in fresh processes, against scikit-learn's and jax's imports.

python benchmarks/import_time.py [--quick] [--out results/speed]
"""

from _timing import Rows, cold_seconds, parse

TABLE = "import numpy; X = numpy.random.default_rng(0).normal(size=(500, 5));"
CASES = {
    "an empty process": "",
    "import numpy": "import numpy",
    "import sklearn": "import sklearn",
    "import sklearn.ensemble": "import sklearn.ensemble",
    "import imblearn.over_sampling": "import imblearn.over_sampling",
    "import jax": "import jax",
    "import jax, optax, blackjax": "import jax, optax, blackjax",
    "import scorefield": "import scorefield",
    "from scorefield import ScoreDensity": "from scorefield import ScoreDensity",
    "from scorefield import ScoreOverSampler": "from scorefield import ScoreOverSampler",
    "first Gaussian fit and score": f"{TABLE} from scorefield import ScoreDensity;"
    "ScoreDensity(model='gaussian').fit(X).score_samples(X)",
    "first energy fit of 100 steps and score": f"{TABLE} from scorefield import ScoreDensity;"
    "ScoreDensity(model='energy', max_steps=100).fit(X).score_samples(X)",
}


def main():
    options = parse(__doc__)
    rows = Rows("import_time", options)
    seconds = {name: cold_seconds(code, options.repeats) for name, code in CASES.items()}
    empty, reference = seconds["an empty process"], seconds["import jax"]
    for name, value in seconds.items():
        over = value - empty
        rows.add(
            f"{name:<41} {value:6.2f} s, {over:6.2f} s over an empty process, {value / reference:5.2f} x import jax",
            job=name, seconds=value, over_empty=over, ratio=value / reference,
        )  # fmt: skip
    rows.write()


if __name__ == "__main__":
    main()
