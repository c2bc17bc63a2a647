"""Typed values as cells: plain text, and JSON values."""

import json


def plain_text(column, decimal="."):
    """Cells of a Series as text: numbers in the shortest form that reads back the same, gaps empty."""
    missing = column.isna().tolist()
    if column.dtype.kind == "f":
        text = column.to_numpy(dtype=getattr(column.dtype, "numpy_dtype", column.dtype), na_value=float("nan"))
        text = text.astype(str).tolist()
        text = [cell.replace(".", decimal) for cell in text] if decimal != "." else text
    elif column.dtype.kind == "M":
        days = bool((column.dropna() == column.dropna().dt.normalize()).all())
        text = (
            column.dt.strftime("%Y-%m-%d").tolist() if days else column.map(lambda v: v.isoformat(), "ignore").tolist()
        )
    else:
        text = list(map(str, column.tolist()))
    return ["" if gap else cell for cell, gap in zip(text, missing, strict=True)]


def plain_tokens(column):
    """Cells of a Series as JSON values; gaps are None."""
    text = column.dtype.kind not in "iufb"
    cells = plain_text(column)
    if column.dtype.kind == "b":
        cells = [cell.lower() for cell in cells]
    values, gaps = column.tolist(), column.isna().tolist()
    return [
        None if gap else json.dumps(cell, ensure_ascii=False) if text and not isinstance(value, int) else cell
        for cell, value, gap in zip(cells, values, gaps, strict=True)
    ]
