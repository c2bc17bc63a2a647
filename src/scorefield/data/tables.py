"""Tables from files: typed columns beside the cells as they are written, and all problems of a table in one report."""

import dataclasses
import difflib
import numbers
import pathlib

from scorefield.data.formats import PART_ROWS, Reading, open_file
from scorefield.data.formats.arrow_files import duplicates, import_pyarrow, parquet_files
from scorefield.data.formats.delimited import Delimited, n_as_written
from scorefield.data.formats.spelling import Spelling
from scorefield.data.formats.typed import How, Problem

STREAMED_BYTES = 256 << 20  # larger Parquet files are read in parts: in memory a table takes several times its file
MARK = "is_synthetic"  # the column that tells generated rows from real ones


class TableError(ValueError):
    """All problems of a table, one per line. `fix` are the options that would remove them, empty if some cannot be."""

    def __init__(self, path, problems):
        fixes = dict.fromkeys(problem.fix for problem in problems)
        self.fix = [word for fix in fixes for word in fix] if all(fixes) else []
        lines = [problem.text for problem in problems]
        if len(lines) > 1:
            lines = [f"Expected a table without faults in {path}, got {len(lines)}:", *(f"- {line}" for line in lines)]
        super().__init__("\n".join(lines))


@dataclasses.dataclass(frozen=True)
class FileTable:
    """A table from a file: `frame` has typed columns, `cells` (an arrow table) what is written in `file`."""

    frame: object
    cells: object
    file: object

    def __len__(self):
        return self.cells.num_rows

    def cells_for(self, output, names=None):
        """The rows as cells of an output format: as they are written if it is of the same family."""
        pa = import_pyarrow()
        names = list(self.frame.columns) if names is None else names
        if output.family == self.file.family:
            cells = self.cells.select(names)
            quotes_fit = isinstance(output, Delimited) and output.separator == self.file.separator
            return self.file.as_written(cells) if quotes_fit else cells
        return pa.table({name: output.encode(self.frame[name]) for name in names})

    def and_columns(self, output, frame, names=None):
        """The cells of `cells_for` and those of more columns of the same rows."""
        cells = self.cells_for(output, names)
        twice = sorted(set(cells.column_names) & set(frame.columns))
        if twice:
            raise ValueError(f"Expected no column {twice[0]!r} in the table, as one is added, got one; --drop it.")
        more = {name: output.encode(frame[name]) for name in frame.columns}
        table = import_pyarrow().table({**dict(zip(cells.column_names, cells.columns, strict=True)), **more})
        return table.replace_schema_metadata(cells.schema.metadata)

    def and_rows(self, output, frame):
        """Parts to write: these rows as they are, and the rows of `frame` after them; it may have more columns."""
        more = frame.columns[len(self.frame.columns) :]
        return [self.and_columns(output, frame[more].iloc[: len(self)]), frame.iloc[len(self) :]]

    def filled_for(self, output, full):
        """The cells of `cells_for`, with values of `full`, a DataFrame of the same rows, in the place of gaps."""
        pa = import_pyarrow()
        cells = self.cells_for(output)
        columns = {}
        for i, name in enumerate(cells.column_names):
            gaps = pa.array((self.frame[name].isna() & full[name].notna()).to_numpy())
            found = output.encode(full[name], cells.column(name).type)
            found = pa.array(output.quoted(found.to_pylist())) if i < n_as_written(cells.schema) else found
            columns[name] = pa.compute.if_else(gaps, found, cells.column(name))
        return pa.table(columns).replace_schema_metadata(cells.schema.metadata)


def read_labelled(path, target, reading=None):
    """A whole table with a column of labels, of at least two classes."""
    return _read(path, reading or Reading(), target)


def read_table(path, reading=None):
    """A whole table of at least one row; columns hold numbers, text or dates."""
    return _read(path, reading or Reading())


def _read(path, reading, target=None):
    file = open_file(path, reading)
    problems = name_problems(file.names, path, reading, target)
    parts = [part for part in file.parts(PART_ROWS) if part.num_rows]
    if not parts:
        raise ValueError(f"Expected rows in {path}, got a header alone.")
    cells, columns, spellings = import_pyarrow().concat_tables(parts), {}, {}
    for name, column in zip(cells.column_names, cells.columns, strict=True):
        if name not in reading.drop:
            column, how = _one_chunk(column), How(reading.kind(name), reading.na, name == target)
            columns[name], found = file.read(name, column, how)
            problems += found
            if not found and isinstance(file, Delimited):
                spellings[name] = Spelling.of(column, columns[name])
    if columns.get(target) is not None:
        problems += _target_problems(columns[target], target)
    if problems:
        raise TableError(path, problems)
    file = dataclasses.replace(file, spellings=spellings) if spellings else file
    return FileTable(_frame(columns), cells.select(list(columns)), file)


def _one_chunk(column):
    pa = import_pyarrow()
    column = column.combine_chunks()
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def _frame(columns):
    import pandas as pd

    return pd.DataFrame({name: column.to_pandas() for name, column in columns.items()})


def is_large(path):
    """True if a table is read in parts for a fit: a folder, or a large Parquet file."""
    path = pathlib.Path(path)
    return path.is_dir() or (path.suffix == ".parquet" and path.is_file() and path.stat().st_size > STREAMED_BYTES)


def read_pair(real, synthetic, reading=None, target=None):
    """Frames of real and of generated rows, from two files or from one with a column is_synthetic.

    With a `target` only the classes that have generated rows are compared.
    """
    first = read_table(real, reading).frame
    if synthetic is None:
        if MARK not in first:
            raise ValueError(f"Expected a second table, or a column {MARK} in {real}, got neither; add one of them.")
        marked = first.pop(MARK).astype(str).str.lower().isin(["true", "1"])
        pair = first[~marked], first[marked]
    else:
        reading = reading or Reading()
        pair = first, read_table(synthetic, dataclasses.replace(reading, forms=forms_of(first))).frame
    if target is None:
        return pair
    _check_target(first, real, target)
    return pair[0][pair[0][target].isin(pair[1][target])], pair[1]


def read_held_out(path, real, reading=None, target=None):
    """A frame of rows like the real ones, of the same classes where there is a `target`."""
    reading = reading or Reading()
    frame = read_table(path, dataclasses.replace(reading, forms=forms_of(real))).frame
    if target is None:
        return frame
    _check_target(frame, path, target)
    return frame[frame[target].isin(real[target])]


def _check_target(frame, path, target):
    problems = name_problems(list(frame.columns), path, target=target)
    if problems:
        raise TableError(path, problems)


def forms_of(frame):
    """Kinds with which another file is read as this table was: its text as text, its numbers as numbers."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_string_dtype

    kinds = {}
    for name in frame.columns:
        dtype = frame[name].dtype
        if is_numeric_dtype(dtype) and not is_bool_dtype(dtype):
            kinds[str(name)] = "number"
        elif is_string_dtype(dtype):
            kinds[str(name)] = "text"
    return kinds


def open_first(path, reading=None):
    """The format of a file, or of the first Parquet file of a folder."""
    return open_file(parquet_files(path)[0] if pathlib.Path(path).is_dir() else path, reading)


def kept_names(file, asked):
    """The columns of a file that are carried over to an output; all of them if "all" is asked for."""
    names = list(file.names)
    if asked == ["all"] and "all" not in names:
        return names
    problems = [
        Problem(f"Expected a column of {file.path} in --keep, got {name!r}; {nearest(name, names)}")
        for name in asked
        if name not in names
    ]
    if problems:
        raise TableError(file.path, problems)
    return asked


def read_parts(path, reading=None, columns=None, kept=(), rows=None):
    """Yield tables of at most `rows` rows, in order, at least one; the index of their frames continues.

    The frames have the columns named in `columns` and `kept` only; those in `kept` are not checked. The Parquet files
    of a folder are read as one table.
    """
    n_rows, reading = 0, reading or Reading()
    for file_path in parquet_files(path) if pathlib.Path(path).is_dir() else [path]:
        file = open_file(file_path, reading)
        problems = name_problems(file.names, file_path, reading, needed=columns or ())
        if problems:
            raise TableError(file_path, problems)
        for cells in file.parts(rows or PART_ROWS):
            if cells.num_rows:
                yield _part(file, reading, cells, columns, kept, n_rows)
                n_rows += cells.num_rows
    if not n_rows:
        raise ValueError(f"Expected rows in {path}, got a header alone.")


def _part(file, reading, cells, names, kept, start):
    import pandas as pd

    names = [name for name in cells.column_names if name not in reading.drop] if names is None else list(names)
    columns, problems = {}, []
    for name in dict.fromkeys([*names, *kept]):
        how = How(reading.kind(name), reading.na, start=start)
        columns[name], found = file.read(name, _one_chunk(cells.column(name)), how)
        problems += found if name in names else []
    if problems:
        raise TableError(file.path, problems)
    frame = _frame({name: column for name, column in columns.items() if column is not None})
    frame.index = pd.RangeIndex(start, start + len(frame))
    return FileTable(frame, cells, file)


def _nearest(name, names):
    """The most similar of the names, or None."""
    folded = {str(other).casefold(): other for other in names}
    near = difflib.get_close_matches(str(name).casefold(), list(folded), 1)
    return folded[near[0]] if near else None


def nearest(name, names):
    """A suggestion: the most similar of the names, or some of them."""
    near = _nearest(name, names)
    if near is not None:
        return f"did you mean {near!r}?"
    return "there are " + ", ".join(map(str, list(names)[:10])) + (", ..." if len(names) > 10 else ".")


def name_problems(names, path, reading=None, target=None, needed=()):
    """What is wrong with the column names of a file, and with the names that were given for it."""
    reading = reading or Reading()
    problems = [
        Problem(f"Expected unique column names in {path}, got {name!r} more than once; rename them.")
        for name in duplicates(names)
    ]
    for word, given in (("--drop", reading.drop), ("--as", reading.columns)):
        problems += [
            Problem(f"Expected a column of {path} in {word}, got {name!r}; {nearest(name, names)}")
            for name in given
            if name not in names
        ]
    if target is not None and target not in names:
        near = _nearest(target, names)
        said = f"Expected a target among the columns of {path}, got {target!r}; {nearest(target, names)}"
        problems.append(Problem(said, ("--target", near) if near else ()))
    problems += [
        Problem(f"Expected the columns that the model was fitted to, got none named {name!r}; {nearest(name, names)}")
        for name in needed
        if name not in names
    ]
    if target is not None and not set(names) - {target, *reading.drop}:
        problems.append(Problem(f"Expected columns beside the target in {path}, got none."))
    return problems


def check_target(target, columns, path):
    """Refuse a table without the column of labels, or with no other column."""
    problems = name_problems(list(columns), path, target=target)
    if problems:
        raise TableError(path, problems)


def check_groups(groups, columns, target):
    """Refuse a column of groups that a table does not have beside its labels and other columns."""
    names = [name for name in columns if name != target]
    if groups is not None and groups not in names:
        raise ValueError(f"Expected a column in --groups, got {groups!r}; {nearest(groups, names)}")
    if groups is not None and len(names) < 2:
        raise ValueError(f"Expected columns beside {target!r} and {groups!r}, got none.")


def _target_problems(column, target):
    pc = import_pyarrow().compute
    labels = pc.unique(column.cells.drop_null()).to_pylist()
    problems = label_problems(labels, column.cells.null_count, target)
    if not problems and len(labels) < 2:
        found = f"{labels[0]!r} alone" if labels else "none"
        problems.append(Problem(f"Expected two classes or more in {target!r}, got {found}; add rows of another class."))
    return problems


def label_problems(labels, n_missing, target):
    """What is wrong with labels: missing ones, fractions, neither numbers nor text."""
    problems = []
    if n_missing:
        problems.append(
            Problem(f"Expected a label in every row, got {n_missing} missing in {target!r}; drop those rows.")
        )
    for label in labels:
        if not isinstance(label, str | numbers.Real):
            said = f"Expected whole numbers or text as labels in {target!r}, got {label!r}; convert them."
        elif isinstance(label, float) and label == label and not label.is_integer():
            said = (
                f"Expected labels in {target!r}, got fractions such as {label}; use whole numbers or text as classes."
            )
        else:
            continue
        return [*problems, Problem(said)]
    return problems


def check_labels(labels, n_missing, target):
    """Refuse labels that are missing, fractions, or neither numbers nor text."""
    problems = label_problems(labels, n_missing, target)
    if problems:
        raise TableError(target, problems)
