"""What everything else stands on: pytrees, storage, batching of rows, random streams, errors."""
