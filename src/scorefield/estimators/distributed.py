"""Over-sampling of tables larger than memory: rare rows are gathered, all partitions are written as they are."""

import dataclasses
from typing import Any

import numpy as np
from imblearn.utils import check_sampling_strategy

from scorefield._jax.random import seed_from
from scorefield.data.checks import cast_numbers, is_missing
from scorefield.data.containers import Table
from scorefield.data.dask import is_lazy
from scorefield.data.files import whole_folder
from scorefield.data.new_keys import example_places, key_pattern
from scorefield.data.spaces import is_mixed
from scorefield.data.tables import PART_ROWS
from scorefield.estimators.oversampling import ScoreOverSampler
from scorefield.models.oversampling import Task, over_sample
from scorefield.models.proposals import MAX_OTHERS
from scorefield.models.selection import MAX_RIVALS, some_places

MAX_TAUGHT = 100_000  # rows of the classes that are not enlarged, from which a teacher learns


def resample_to_parquet(sampler, frame, target, folder):
    """Over-sample a dask dataframe into a folder of Parquet files.

    The rows of the classes that are enlarged are gathered in this process, where the new rows are made; their fields
    are fitted here too, unless there are several and ``joblib.parallel_config`` sends them elsewhere. All other rows
    stay in their partitions, which are written as they are, one file each; the new rows follow in files of their own.
    The rows of a table of numbers are those that ``sampler.fit_resample`` gives for the whole table, with the same
    ``random_state``, for ``purpose="sharing"``. A table with missing values or other columns is learned from its rare
    rows and 10,000 of the others; for ``purpose="learning"`` the teacher learns from the rare rows and up to 100,000
    of the others, which are weighted so that classes keep their shares.

    Parameters
    ----------
    sampler : ScoreOverSampler
        It is not changed. Only rows of the classes that it enlarges are checked for missing values.
    frame : dask dataframe
        Its index is not written. It is read four times, unless it is persisted: to count the labels, to gather the
        rare rows, for the ranges of numbers (not with given ``bounds``), and to write; and twice more where rows of the
        others are needed: for a teacher, or for each class that is enlarged with ``where="clear"``.
    target : column label
        The column that holds the classes.
    folder : path
        A new folder, on storage that the workers share with this process. Files are written beside it under a
        temporary name, and the folder appears when it is whole.

    Returns
    -------
    n_new : dict
        Label to the number of generated rows, for the classes that were enlarged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import dask.dataframe as dd
    >>> import numpy as np
    >>> import pandas as pd
    >>> from scorefield import ScoreDensity, ScoreOverSampler, resample_to_parquet
    >>> table = pd.DataFrame(np.random.default_rng(0).normal(size=(110, 2)), columns=["height", "weight"])
    >>> table["sick"] = [0] * 98 + [1] * 12
    >>> density = ScoreDensity(model="gaussian")
    >>> sampler = ScoreOverSampler(purpose="sharing", density=density, random_state=0)
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = pathlib.Path(place) / "balanced"
    ...     n_new = resample_to_parquet(sampler, dd.from_pandas(table, npartitions=2), "sick", folder)
    ...     written = dd.read_parquet(folder)["sick"].value_counts().compute()
    >>> n_new, written.sort_index().tolist()
    ({1: 86}, [98, 98])
    """
    _check_task(sampler, frame, target)
    with whole_folder(folder) as partial:
        generated = _generate(sampler, frame, target, _strategy(sampler, frame[target]))
        frame.to_parquet(partial, write_index=False, name_function=_file_name)
        _write_after(partial, frame.npartitions, generated)
    labels, n_new = np.unique(np.asarray(generated[target]), return_counts=True)
    return dict(zip(labels.tolist(), n_new.tolist(), strict=True))


def _check_task(sampler, frame, target):
    """Check the arguments before any computation."""
    if not isinstance(sampler, ScoreOverSampler):
        raise ValueError(f"Expected a ScoreOverSampler, got {type(sampler).__name__}; use its own fit_resample.")
    sampler._validate_params()
    sampler.check_settings()
    if not (is_lazy(frame) and hasattr(frame, "npartitions") and hasattr(frame, "columns")):
        raise ValueError(
            f"Expected a dask dataframe, got {type(frame).__name__}; use sampler.fit_resample for tables in memory."
        )
    if not frame.columns.is_unique:
        raise ValueError("Expected unique column names, got duplicates; rename them.")
    if target not in frame.columns:
        raise ValueError(f"Expected target to be one of {list(frame.columns)}, got {target!r}.")
    table = frame.drop(columns=target)._meta
    if table.shape[1] == 0:
        raise ValueError(f"Expected columns beside {target!r}, got none; there is nothing to generate.")


def _strategy(sampler, labels):
    """Number of rows to generate per class, by imbalanced-learn's rules."""
    counts = labels.value_counts(dropna=False, split_out=1).compute()  # classes are few: no shuffle
    counts = counts[counts > 0]  # a category without rows is no class
    if any(is_missing(label) for label in counts.index):
        raise ValueError(f"Expected a label in every row of {labels.name!r}, got missing ones; drop those rows.")
    if len(counts) < 2:
        raise ValueError(f"Expected at least two classes in {labels.name!r}, got {counts.index.tolist()}.")
    y = np.repeat(np.asarray(counts.index), counts)
    return check_sampling_strategy(sampler.sampling_strategy, y, sampler._sampling_type)


@dataclasses.dataclass
class TaskOfPart(Task):
    """Some rows of a dask dataframe, with answers for all of it."""

    frame: Any = None
    target: Any = None

    def spread(self):
        return self._all_numbers().std(ddof=0).compute().to_numpy()

    def ranges(self):
        import dask

        numbers = self._all_numbers()
        return tuple(limit.to_numpy() for limit in dask.compute(numbers.min(), numbers.max()))

    def _all_numbers(self):
        return self.frame[list(self.X.columns)].astype(np.float64)

    def rivals(self, label, rng):
        others = _without_missing(self.frame[self.frame[self.target] != label][list(self.X.columns)])
        return np.asarray(_rows_at(others, lambda n: some_places(rng, n, MAX_RIVALS)), dtype=np.float64)

    def refuse_boundary(self):
        raise ValueError("Expected a table in memory for where='boundary', got a larger one; choose another.")

    def with_constants(self, table, numbers, new):
        """A column that is constant in this part alone takes the new numbers."""
        for i in np.flatnonzero((np.ptp(numbers, axis=0) == 0) & (np.ptp(new, axis=0) > 0)):
            table.isetitem(i, cast_numbers(new[:, i], self.X.dtypes.iloc[i]))
        return table

    def set_keys(self, encoder):
        """Identifiers continue those of the whole table."""
        names = encoder.identifiers
        encoder.set_keys(_key_patterns(self.frame[names]) if names else {})


def _generate(sampler, frame, target, wanted):
    """The new rows as a DataFrame with the columns and dtypes of the frame."""
    import pandas as pd

    labels = [label for label, n in wanted.items() if n > 0]
    gathered = frame[frame[target].isin(labels)].compute()
    mixed = is_mixed(gathered.drop(columns=target), sampler.columns)
    settings = dataclasses.replace(sampler.settings(), mixed=mixed)
    part, weights = gathered, None
    if labels and (settings.mixed or settings.purpose == "learning"):
        complete = frame if settings.mixed else _without_missing(frame)
        most = MAX_TAUGHT if settings.purpose == "learning" else MAX_OTHERS
        part, weights = _with_others(sampler, complete, target, gathered, most)
    task = TaskOfPart(part.drop(columns=target), np.asarray(part[target]), wanted, weights, frame, target)
    made = over_sample(task, settings)
    rows = gathered[:0].drop(columns=target) if made.table is None else made.table.copy()
    rows.insert(
        gathered.columns.get_loc(target), target, pd.Series(made.labels, rows.index).astype(gathered[target].dtype)
    )
    return rows


def _without_missing(frame):
    return frame.replace([np.inf, -np.inf], np.nan).dropna()


def _with_others(sampler, frame, target, gathered, most):
    """The gathered rows and a sample of the others, and the weights by which they stand for the frame, if any do."""
    import pandas as pd

    others = frame[~frame[target].isin(gathered[target].unique().tolist())]
    rng = np.random.default_rng(seed_from(sampler.random_state) % (1 << 31))
    counts = []

    def choose(n):
        counts.append(n)
        return np.sort(rng.permutation(n)[:most])

    sample = _rows_at(others, choose)
    weights = np.repeat([1.0, counts[0] / len(sample)], [len(gathered), len(sample)])
    return pd.concat([gathered, sample], ignore_index=True), weights if counts[0] > len(sample) else None


def _key_patterns(frame):
    """Patterns of identifiers, by name, from a few values of each partition."""
    import dask
    import pandas as pd

    parts = dask.compute(*(dask.delayed(_key_examples)(part) for part in frame.to_delayed()))
    examples = {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in frame.columns}
    return {
        name: key_pattern(Table(column.drop_duplicates().to_frame()).cells(name)) for name, column in examples.items()
    }


def _key_examples(part):
    """Values of each identifier of a partition that have its pattern."""
    table = Table(part)
    return {name: part[name].iloc[example_places(table.cells(name))] for name in table.names}


def _rows_at(frame, choose):
    """The rows whose positions `choose(n_rows)` returns."""
    import dask
    import pandas as pd

    ends = np.cumsum(np.asarray(frame.map_partitions(len).compute()))
    if ends[-1] == 0:
        raise ValueError("Expected rows of the other classes without missing numbers, got none; fill or drop them.")
    places = choose(int(ends[-1]))
    parts = []
    for part, begin, end in zip(frame.partitions, [0, *ends[:-1]], ends, strict=True):
        within = places[(begin <= places) & (places < end)] - begin
        if len(within):
            parts.append(part.map_partitions(lambda rows, at: rows.iloc[at], within, meta=frame._meta))
    return pd.concat(dask.compute(*parts))


def _file_name(i):
    return f"part.{i}.parquet"


def _write_after(folder, n_files, rows):
    """Write further files with the schema of the existing ones."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(folder / _file_name(0))
    for i, start in enumerate(range(0, len(rows), PART_ROWS)):
        part = pa.Table.from_pandas(rows[start : start + PART_ROWS], schema=schema, preserve_index=False)
        pq.write_table(part, folder / _file_name(n_files + i))
