"""Parquet and Feather files: cells are typed columns of arrow."""

import contextlib
import dataclasses
import pathlib

from scorefield.data.formats.arrow_files import arrow_errors, import_pyarrow, open_parquet
from scorefield.data.formats.typed import read_arrow


@dataclasses.dataclass(frozen=True)
class Binary:
    """A file whose columns have types, which stay as they are."""

    path: pathlib.Path
    names: tuple = ()
    family = "arrow"

    @classmethod
    def open(cls, path, reading):
        with cls(path)._schema_and_batches(1) as (schema, _):
            # An index that pandas stored is not a column for pandas either.
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            return cls(path, tuple(name for name in schema.names if name not in index))

    def read(self, name, cells, how):
        return read_arrow(name, cells, how)

    def encode(self, column, kind=None):
        """Typed values as an arrow column, in the type of the cells written before them."""
        pa = import_pyarrow()
        cells = pa.array(column, from_pandas=True)
        if kind is None or cells.type == kind:
            return cells
        if pa.types.is_decimal(kind) and pa.types.is_floating(cells.type):
            return pa.compute.round(cells, kind.scale).cast(kind, safe=False)
        return cells.cast(kind, safe=False)

    def parts(self, rows):
        """Yield tables as they are stored."""
        pa = import_pyarrow()
        with self._schema_and_batches(rows) as (schema, batches):
            places = [i for i, name in enumerate(schema.names) if name in self.names]
            for batch in batches:
                yield pa.Table.from_batches([batch]).select(places).replace_schema_metadata()


class Parquet(Binary):
    """Parquet files."""

    @contextlib.contextmanager
    def _schema_and_batches(self, rows):
        with open_parquet(self.path) as stream:
            yield stream.schema_arrow, stream.iter_batches(batch_size=rows)

    @contextlib.contextmanager
    def writer(self, path, schema):
        with import_pyarrow().parquet.ParquetWriter(path, schema) as stream:
            yield stream.write_table


class Feather(Binary):
    """Feather files, also named .arrow."""

    @contextlib.contextmanager
    def _schema_and_batches(self, rows):
        with (
            arrow_errors(self.path, "Feather") as pa,
            pa.memory_map(str(self.path)) as source,
            pa.ipc.open_file(source) as stream,
        ):
            batches = (stream.get_batch(i) for i in range(stream.num_record_batches))
            yield stream.schema, (batch.slice(i, rows) for batch in batches for i in range(0, len(batch), rows))

    @contextlib.contextmanager
    def writer(self, path, schema):
        with import_pyarrow().ipc.new_file(str(path), schema) as stream:
            yield stream.write_table
