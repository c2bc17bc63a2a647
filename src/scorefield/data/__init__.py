"""Tables: columns and their units, files, Parquet and dask, data sets."""
