"""Typed values as cells: plain text, and JSON values."""

import json


def plain_text(column, decimal="."):
    """Cells of a Series as text: numbers in the shortest form that reads back the same, gaps empty."""
    if column.dtype.kind == "f":
        values = column.to_numpy(dtype=getattr(column.dtype, "numpy_dtype", column.dtype), na_value=float("nan"))
        text = [cell.replace(".", decimal) for cell in values.astype(str).tolist()]
    elif column.dtype.kind == "M":
        whole_days = bool((column.dropna() == column.dropna().dt.normalize()).all())
        text = [str(moment)[:10] if whole_days else str(moment) for moment in column.tolist()]
    else:
        text = list(map(str, column.tolist()))
    return ["" if gap else cell for cell, gap in zip(text, column.isna().tolist(), strict=True)]


def plain_tokens(column):
    """Cells of a Series as JSON values; gaps are null."""
    cells, values, gaps = plain_text(column), column.tolist(), column.isna().tolist()
    return ["null" if gap else _token(cell, value) for cell, value, gap in zip(cells, values, gaps, strict=True)]


def _token(cell, value):
    if isinstance(value, bool):
        return cell.lower()
    return cell if isinstance(value, int | float) else json.dumps(cell, ensure_ascii=False)
