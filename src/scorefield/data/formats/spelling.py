"""How the columns of a text file write their cells: blanks, missing values and decimals, by the commonest spelling."""

import dataclasses
import re
from collections import Counter, defaultdict

from scorefield.data.formats.arrow_files import import_pyarrow

FRACTION = re.compile(r"[+-]?\d*[.,](\d+)")
WHOLE = re.compile(r"[+-]?\d+")


@dataclasses.dataclass(frozen=True)
class Spelling:
    """How a column writes its cells.

    `levels` maps a text to its spelling; other cells have the blanks `before` and `after`. Numbers have `decimals`, or
    as many as they need if it is None, and `whole` ones among them are written without any.
    """

    levels: dict = dataclasses.field(default_factory=dict)
    before: str = ""
    after: str = ""
    missing: str = ""
    decimals: int | None = None
    whole: bool = False

    @classmethod
    def of(cls, raw, column):
        """The spelling of a typed column whose cells are written as `raw`."""
        pc = import_pyarrow().compute
        known = column.cells.is_valid()
        missing = Counter(raw.filter(pc.invert(known)).to_pylist())
        raw = raw.filter(known)
        text = pc.utf8_trim_whitespace(raw)
        before, after, levels = "", "", {}
        if pc.any(pc.not_equal(raw, text)).as_py():
            before, after, levels = _blanks(text, raw)
        numbers = _decimals(pc.unique(text).to_pylist()) if column.kind == "float" else {}
        levels = levels if column.kind == "text" else {}
        return cls(levels, before, after, _commonest(missing) if missing else "", **numbers)

    def write(self, cells, decimal="."):
        """Plain cells, of which the empty ones are missing, as the column writes them."""
        if self.decimals is not None:
            cells = [cell and _fixed(cell, self.decimals, decimal) for cell in cells]
        elif self.whole:
            shorter = [cell.removesuffix(f"{decimal}0") for cell in cells]
            # Without a single decimal mark a column of fractions would be read as one of whole numbers.
            cells = shorter if any(decimal in cell for cell in shorter) else cells
        return [self.levels.get(cell) or self.before + cell + self.after if cell else self.missing for cell in cells]

    def to_plain(self):
        """The fields that differ from their defaults."""
        usual = Spelling()
        return {name: value for name, value in vars(self).items() if value != getattr(usual, name)}


def _blanks(text, raw):
    """The commonest blanks before and after the cells, and the commonest spelling of each text with other ones."""
    pa = import_pyarrow()
    groups = pa.table({"text": text, "raw": raw}).group_by(["text", "raw"]).aggregate([([], "count_all")]).to_pylist()
    around, spellings = Counter(), defaultdict(Counter)
    for group in groups:
        before, _, after = group["raw"].partition(group["text"])
        around[before, after] += group["count_all"]
        spellings[group["text"]][group["raw"]] += group["count_all"]
    before, after = _commonest(around)
    commonest = {cell: _commonest(counts) for cell, counts in spellings.items()}
    return before, after, {cell: said for cell, said in commonest.items() if said != before + cell + after}


def _commonest(counts):
    """The commonest of several spellings; of equally common ones the shortest, whatever the order of the rows."""
    return min(counts, key=lambda said: (-counts[said], len("".join(said)), said))


def _decimals(texts):
    """The decimals that all numbers share, or whether whole ones among fractions are written without a mark."""
    lengths = {len(match[1]) for match in map(FRACTION.fullmatch, texts) if match}
    n_whole = sum(map(bool, map(WHOLE.fullmatch, texts)))
    if len(lengths) == 1 and not n_whole and all(map(FRACTION.fullmatch, texts)):
        return {"decimals": lengths.pop()}
    return {"whole": n_whole > 0}


def _fixed(cell, decimals, decimal):
    number = f"{float(cell.replace(decimal, '.')):.{decimals}f}"
    return number.replace(".", decimal)
