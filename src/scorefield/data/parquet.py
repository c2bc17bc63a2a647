"""Rows and labels of Parquet files, one row group at a time, checked before and while they are read."""

import functools
from collections import Counter

import numpy as np

from scorefield.data.formats.arrow_files import (
    cast_column,
    check_unique,
    decimals_as_numbers,
    import_pyarrow,
    open_parquet,
    parquet_files,
)
from scorefield.data.parts import places_of
from scorefield.data.tables import PART_ROWS, check_labels, check_target


class ParquetTable:
    """Rows and labels of a Parquet file or of the files of a folder, one row group at a time.

    `groups` lists (file, row group, rows); `columns` maps all names to types; `names` are the columns without the
    target; `is_mixed` is true if one of those has gaps or holds no numbers.
    """

    def __init__(self, path, target):
        self.path, self.target = path, target
        self.columns, self.groups, with_gaps = None, [], set()
        for file in parquet_files(path):
            with open_parquet(file) as stream:
                self._check_schema(file, stream.schema_arrow)
                sizes = [stream.metadata.row_group(g).num_rows for g in range(stream.num_row_groups)]
                with_gaps |= _with_gaps(stream.metadata)
            self.groups += [(file, g, n) for g, n in enumerate(sizes) if n]
        self.n_rows = sum(n for *_, n in self.groups)
        if not self.n_rows:
            raise ValueError(f"Expected rows in {path}, got a header alone.")
        self._check_columns(with_gaps)

    def _check_schema(self, file, schema):
        types = import_pyarrow().types
        check_unique(schema.names, file)
        columns = {
            field.name: field.type.value_type if types.is_dictionary(field.type) else field.type
            for field in decimals_as_numbers(schema)
        }
        for index in (schema.pandas_metadata or {}).get("index_columns", []):
            columns.pop(index if isinstance(index, str) else None, None)  # not a column for pandas either
        self.columns = self.columns or columns
        for name in [*self.columns, *columns]:
            expected, found = self.columns.get(name, "no such column"), columns.get(name, "no such column")
            if expected != found:
                raise ValueError(
                    f"Expected the same columns in all files of {self.path}, got {found} for {name!r} in {file.name} "
                    f"where the first file has {expected}; write them with one schema."
                )

    def _check_columns(self, with_gaps):
        types, target = import_pyarrow().types, self.target
        check_target(target, self.columns, self.path)
        label = self.columns[target]
        kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
        if not any(kind(label) for kind in kinds):
            raise ValueError(f"Expected whole numbers or text as labels in {target!r}, got {label}; convert them.")
        self.names = [name for name in self.columns if name != target]
        numbers = [name for name in self.names if any(kind(self.columns[name]) for kind in kinds[:3])]
        self.is_mixed = len(numbers) < len(self.names) or not with_gaps.isdisjoint(self.names)
        if self.is_mixed:
            return
        self.dtype = np.result_type(*(self.columns[name].to_pandas_dtype() for name in self.names))
        self.dtype = self.dtype if self.dtype == np.float32 else np.dtype(np.float64)

    @property
    def integers(self):
        """Names of the integer columns."""
        return [name for name in self.names if import_pyarrow().types.is_integer(self.columns[name])]

    @property
    def forms(self):
        """Kinds with which another file is read as this one: its text as text, its numbers as numbers."""
        types, found = import_pyarrow().types, {}
        for name in self.names:
            kind = self.columns[name]
            if types.is_integer(kind) or types.is_floating(kind) or not self.is_mixed:
                found[name] = "number"
            elif types.is_string(kind) or types.is_large_string(kind):
                found[name] = "text"
        return found

    @property
    def classes(self):
        return self._labels[0]

    @property
    def counts(self):
        """Rows of each class."""
        return self._labels[1]

    @functools.cached_property
    def _labels(self):
        """The sorted classes and their counts, from a pass over the label column."""
        pa, counts = import_pyarrow(), Counter()
        for file, group, _ in self.groups:
            with open_parquet(file) as stream:
                column = stream.read_row_group(group, columns=[self.target]).column(0)
            found = pa.compute.value_counts(cast_column(column, self.columns[self.target]))
            counts.update(dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True)))
        n_missing = sum(count for label, count in counts.items() if label is None or label != label)
        check_labels(counts, n_missing, self.target)
        ordered = sorted(counts)
        classes = np.array(ordered, dtype=self.columns[self.target].to_pandas_dtype())
        return classes, np.array([counts[label] for label in ordered])

    def rows_of(self, ranks):
        """Rows of these ranks of each class, see `places_of`, as numbers or an arrow table; and numbers of classes."""
        before, parts, codes = np.zeros(len(ranks), int), [], []
        for file, group, _ in self.groups:
            with open_parquet(file) as stream:
                for batch in stream.iter_batches(PART_ROWS, row_groups=[group], columns=[*self.names, self.target]):
                    own = self._codes(batch.column(self.target), file)
                    places = places_of(own, ranks, before)
                    before += np.bincount(own, minlength=len(before))
                    parts.append(self._cells(batch, places) if self.is_mixed else self._rows(batch, file)[places])
                    codes.append(own[places])
        joined = import_pyarrow().concat_tables(parts) if self.is_mixed else np.concatenate(parts).astype(self.dtype)
        return joined, np.concatenate(codes)

    def _cells(self, batch, places):
        columns = [cast_column(batch.column(name), self.columns[name]) for name in self.names]
        return import_pyarrow().table(columns, self.names).take(places)

    def _rows(self, batch, file):
        rows = np.empty((len(batch), len(self.names)))
        for j, name in enumerate(self.names):
            column = cast_column(batch.column(name), self.columns[name])
            rows[:, j] = np.nan if column.null_count else column.to_numpy(zero_copy_only=False)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=0))
        if len(bad):
            raise ValueError(
                f"Expected finite numbers in every column, got missing values, NaN or infinity in "
                f"{self.names[bad[0]]!r} of {file.name}; fill or drop them."
            )
        return rows

    def _codes(self, labels, file):
        pa, kind = import_pyarrow(), self.columns[self.target]
        codes = pa.compute.index_in(cast_column(labels, kind), value_set=pa.array(self.classes.tolist(), kind))
        if codes.null_count:
            raise ValueError(
                f"Expected the labels that were counted before, got others in {file.name}; do not change the file "
                "during a fit."
            )
        return codes.to_numpy()


def _with_gaps(metadata):
    """Names of the columns of a file with missing values, as far as the file says so."""
    found = set()
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            if column.statistics is not None and column.statistics.has_null_count and column.statistics.null_count:
                found.add(column.path_in_schema)
    return found
