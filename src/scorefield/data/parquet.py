"""Numbers and labels of Parquet files, one row group at a time, checked before and while they are read."""

import functools
import pathlib
from collections import Counter

import numpy as np

PART_ROWS = 1 << 16  # rows that are decoded at once, in double precision: 52 MB with 100 columns
READ_BYTES = 1 << 20  # of a column read ahead; without a bound pyarrow reads the whole column of a row group


def _pyarrow():
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise ValueError(
            "Expected pyarrow to read Parquet files, but it is not installed; pip install 'scorefield[cli]'."
        ) from error
    return pyarrow


def parquet_files(path):
    """The Parquet files behind a path: the file itself, or those of a folder by name."""
    path = pathlib.Path(path)
    if not path.exists():
        raise FileNotFoundError(f"Expected a Parquet file or a folder of them, but {path} does not exist.")
    if not path.is_dir():
        if path.suffix != ".parquet":
            raise ValueError(f"Expected a file that ends in .parquet or a folder of them, got {path}; convert it.")
        return [path]
    nested = next(path.glob("*/**/*.parquet"), None)
    if nested is not None:
        raise ValueError(
            f"Expected Parquet files directly in {path}, got one in its folder {nested.parent.name}; columns that are "
            "folder names are not read: write the table without partitions."
        )
    files = sorted(file for file in path.glob("*.parquet") if not file.name.startswith(("_", ".")))
    if not files:
        raise ValueError(f"Expected Parquet files in the folder {path}, got none that ends in .parquet.")
    return files


class ParquetTable:
    """Numbers and labels of a Parquet file or of the files of a folder, one row group at a time.

    `groups` lists (file, row group, rows); `columns` maps all names to types, `names` are those beside the target.
    """

    def __init__(self, path, target):
        self.path, self.target = path, target
        self.columns, self.groups = None, []
        for file in parquet_files(path):
            with self._open(file) as stream:
                self._check_schema(file, stream.schema_arrow)
                sizes = [stream.metadata.row_group(g).num_rows for g in range(stream.num_row_groups)]
            self.groups += [(file, g, n) for g, n in enumerate(sizes) if n]
        self.n_rows = sum(n for *_, n in self.groups)
        if not self.n_rows:
            raise ValueError(f"Expected rows in {path}, got a header alone.")
        self._check_columns()

    def _open(self, file):
        pa = _pyarrow()
        try:
            return pa.parquet.ParquetFile(file, buffer_size=READ_BYTES, pre_buffer=False)
        except pa.ArrowInvalid as error:
            raise ValueError(f"Expected a Parquet file, got {file}: {str(error).splitlines()[0]}") from error

    def _check_schema(self, file, schema):
        twice = [name for name, count in Counter(schema.names).items() if count > 1]
        if twice:
            raise ValueError(f"Expected unique column names in {file}, got {twice[0]!r} more than once; rename them.")
        types = _pyarrow().types
        columns = {f.name: f.type.value_type if types.is_dictionary(f.type) else f.type for f in schema}
        for index in (schema.pandas_metadata or {}).get("index_columns", []):
            columns.pop(index if isinstance(index, str) else None, None)  # pandas reads it as no column either
        self.columns = self.columns or columns
        for name in [*self.columns, *columns]:
            expected, found = self.columns.get(name, "no such column"), columns.get(name, "no such column")
            if expected != found:
                raise ValueError(
                    f"Expected the same columns in all files of {self.path}, got {found} for {name!r} in {file.name} "
                    f"where the first file has {expected}; write them with one schema."
                )

    def _check_columns(self):
        types, target = _pyarrow().types, self.target
        if target not in self.columns:
            names = ", ".join(list(self.columns)[:10]) + (", ..." if len(self.columns) > 10 else "")
            raise ValueError(f"Expected a target among the columns of {self.path} ({names}), got {target!r}.")
        label = self.columns[target]
        kinds = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
        if not any(kind(label) for kind in kinds):
            raise ValueError(f"Expected whole numbers or texts as labels in {target!r}, got {label}; convert them.")
        self.names = [name for name in self.columns if name != target]
        if not self.names:
            raise ValueError(f"Expected columns beside the target in {self.path}, got none.")
        for name in self.names:
            if not any(kind(self.columns[name]) for kind in kinds[:3]):
                raise ValueError(
                    f"Expected numbers in every column, got {self.columns[name]} in {name!r}; encode it as numbers or "
                    "drop it."
                )
        self.dtype = np.result_type(*(self.columns[name].to_pandas_dtype() for name in self.names))
        self.dtype = self.dtype if self.dtype == np.float32 else np.dtype(np.float64)

    @property
    def integers(self):
        """Names of the columns of whole numbers."""
        return [name for name in self.names if _pyarrow().types.is_integer(self.columns[name])]

    @property
    def classes(self):
        return self._labels[0]

    @property
    def counts(self):
        """Rows of each class."""
        return self._labels[1]

    @functools.cached_property
    def _labels(self):
        """The classes in order and their counts: a pass over one column, a small part of the file."""
        pa, counts = _pyarrow(), Counter()
        for file, group, _ in self.groups:
            with self._open(file) as stream:
                column = stream.read_row_group(group, columns=[self.target]).column(0)
            found = pa.compute.value_counts(column.cast(self.columns[self.target]))
            counts.update(dict(zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True)))
        n_missing = sum(count for label, count in counts.items() if label is None or label != label)
        if n_missing:
            raise ValueError(
                f"Expected a label in every row, got {n_missing} missing in {self.target!r}; drop those rows."
            )
        if any(isinstance(label, float) and not label.is_integer() for label in counts):
            raise ValueError(f"Expected labels in {self.target!r}, got fractions; a class is a whole number or a text.")
        ordered = sorted(counts)
        classes = np.array(ordered, dtype=self.columns[self.target].to_pandas_dtype())
        return classes, np.array([counts[label] for label in ordered])

    def parts(self, group):
        """(rows in double precision, class numbers) of one row group, at most PART_ROWS at a time."""
        file, number, _ = self.groups[group]
        with self._open(file) as stream:
            for batch in stream.iter_batches(PART_ROWS, row_groups=[number], columns=[*self.names, self.target]):
                yield self._rows(batch, file), self._codes(batch.column(self.target), file)

    def _rows(self, batch, file):
        rows = np.empty((len(batch), len(self.names)))
        for j, name in enumerate(self.names):
            column = batch.column(name).cast(self.columns[name])
            rows[:, j] = np.nan if column.null_count else column.to_numpy(zero_copy_only=False)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=0))
        if len(bad):
            raise ValueError(
                f"Expected finite numbers in every column, got missing values, NaN or infinity in "
                f"{self.names[bad[0]]!r} of {file.name}; fill or drop them."
            )
        return rows

    def _codes(self, labels, file):
        pa, kind = _pyarrow(), self.columns[self.target]
        codes = pa.compute.index_in(labels.cast(kind), value_set=pa.array(self.classes.tolist(), kind))
        if codes.null_count:
            raise ValueError(f"Expected the labels that were counted, got others in {file.name}: it was changed.")
        return codes.to_numpy()

    def read(self):
        """The whole table in memory: rows and labels."""
        parts = [part for group in range(len(self.groups)) for part in self.parts(group)]
        rows, codes = (np.concatenate(leaves) for leaves in zip(*parts, strict=True))
        return rows.astype(self.dtype), self.classes[codes]
