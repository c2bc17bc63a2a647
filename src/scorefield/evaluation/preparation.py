"""From mixed tables with gaps to learners: which encoder each learner needs, and which variant of SMOTE."""

import dataclasses
from typing import Any

from imblearn.over_sampling import SMOTE, SMOTEN, SMOTENC
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.utils import get_tags

from scorefield.data.encoding import TableEncoder
from scorefield.data.kinds import NUMBER_KINDS
from scorefield.data.recognition import decided_kind
from scorefield.estimators.mixed_encoder import MixedEncoder


@dataclasses.dataclass(frozen=True)
class Preparation:
    """Steps before a learner, before noise, and before and after interpolation; none for plain numbers."""

    learner: tuple = ()
    noise: tuple = ()
    smote: tuple = ()
    after_smote: tuple = ()
    interpolation: Any = SMOTE
    categories: tuple = ()
    columns: dict | None = None  # kinds for the over-sampler that takes the table itself


PLAIN = Preparation()


def prepare(learner, X, columns, *, fixed):
    """The preparation of a mixed table for a learner.

    `fixed` kinds of columns are those of the whole table: parts of it then agree in the positions of categories.
    """
    kinds, decided = kinds_of(X, columns) if fixed else (columns, {})
    codes = MixedEncoder(columns=kinds).fit(X)
    of_levels, n_columns = codes.categories_, len(codes.get_feature_names_out())
    interpolation = SMOTE if not of_levels else SMOTENC if len(of_levels) < n_columns else SMOTEN
    form = _form(learner)
    again = MixedEncoder("one-hot", columns=dict.fromkeys(of_levels, "category") or None)
    return Preparation(
        () if form is None else (MixedEncoder(form, columns=kinds),),
        (MixedEncoder("one-hot", columns=kinds),),
        (MixedEncoder("filled", columns=kinds),),
        () if form == "codes" else (again,),
        interpolation,
        tuple(of_levels),
        {**decided, **columns} if columns else decided or columns,
    )


def kinds_of(X, columns=None):
    """Kinds of the columns of a table that vary, and of those whose spelling a part of the table may leave open.

    Columns with spikes are numbers, as parts of a table may have none.
    """
    fitted = [column for column in TableEncoder(columns).fit(X).columns_ if column.kind != "constant"]
    kinds = {column.name: "number" if column.kind == "spiked number" else column.kind for column in fitted}
    decided = {column.name: decided_kind(column.kind, column.text) for column in fitted if column.kind in NUMBER_KINDS}
    decided = {name: kind for name, kind in decided.items() if ":" in kind}
    return {**kinds, **decided}, decided


def _form(learner):
    """The form of a table that suits a learner; None for one that takes text and gaps itself."""
    tags = get_tags(learner).input_tags
    if tags.allow_nan and tags.string:
        return None
    return "codes" if tags.allow_nan else "one-hot"


def chain(*steps):
    """A pipeline of clones, or a clone of the only step."""
    steps = [clone(step) for step in steps]
    return steps[0] if len(steps) == 1 else make_pipeline(*steps)


def interpolate(preparation, n_neighbors, seed=None):
    """The variant of SMOTE that suits the columns."""
    if preparation.interpolation is SMOTENC:
        return SMOTENC(list(preparation.categories), k_neighbors=n_neighbors, random_state=seed)
    return preparation.interpolation(k_neighbors=n_neighbors, random_state=seed)
