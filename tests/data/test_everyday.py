"""Dates, money and per cent in everyday spelling: read by whole columns, written back as they were."""

import numpy as np
import pandas as pd
import pytest

from scorefield import describe_columns
from scorefield.data.encoding import Encoded, TableEncoder

RNG = np.random.default_rng(0)
DAYS = pd.to_datetime("2023-12-20") + pd.to_timedelta(RNG.integers(0, 700, 40), unit="D")
AMOUNTS = np.round(RNG.normal(500, 900, 40), 2)


def german(number, decimals=2):
    return f"{number:,.{decimals}f}".translate(str.maketrans(",.", ".,"))


SPELLINGS = {
    "24.12.2025": (DAYS.strftime("%d.%m.%Y"), "date"),
    "12/24/2025": (DAYS.strftime("%m/%d/%Y"), "date"),
    "24/12/2025": (DAYS.strftime("%d/%m/%Y"), "date"),
    "2025/12/24": (DAYS.strftime("%Y/%m/%d"), "date"),
    "24-12-2025": (DAYS.strftime("%d-%m-%Y"), "date"),
    "1/9/2025": ([f"{day.month}/{day.day}/{day.year}" for day in DAYS], "date"),
    "24.12.25": (DAYS.strftime("%d.%m.%y"), "date"),
    "24.12.2025 08:30": (DAYS.strftime("%d.%m.%Y 08:%d"), "date"),
    "12/24/2025 8:30:05": (DAYS.strftime("%m/%d/%Y 8:30:%d"), "date"),
    "$1,234.00": ([f"${abs(amount):,.2f}" for amount in AMOUNTS], "number"),
    "-$5.00": ([f"-${-amount:,.2f}" if amount < 0 else f"${amount:,.2f}" for amount in AMOUNTS], "number"),
    "(1,234.00)": ([f"({-amount:,.2f})" if amount < 0 else f"{amount:,.2f}" for amount in AMOUNTS], "number"),
    "1.234,00 EUR": ([f"{german(amount)} EUR" for amount in AMOUNTS], "number"),
    "€ 5": ([f"€ {abs(int(amount))}" for amount in AMOUNTS], "whole number"),
    "$1,234": ([f"${abs(int(amount)):,}" for amount in AMOUNTS], "whole number"),
    "12.3%": ([f"{amount / 100:.1f}%" for amount in AMOUNTS], "number"),
    "12,3 %": ([f"{german(amount / 100, 1)} %" for amount in AMOUNTS], "number"),
    "12'345.60 CHF": ([f"{abs(amount) * 77.77:,.2f} CHF".replace(",", "'") for amount in AMOUNTS], "number"),
    "1234,5": ([f"{amount:.1f}".replace(".", ",") for amount in AMOUNTS], "number"),
    "1,234,567": ([f"{abs(int(amount)) + 1:,},000" for amount in AMOUNTS * 1000], "whole number"),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_spelling_is_read_and_written_back(name):
    texts, kind = SPELLINGS[name]
    frame = pd.DataFrame({"x": list(texts)})
    encoder = TableEncoder().fit(frame)
    rows = encoder.encode(frame)
    assert encoder.columns_[0].kind == kind
    assert encoder.decode(rows)["x"].tolist() == frame["x"].tolist()
    assert describe_columns(frame).rows[0]["treatment"].startswith("modelled as a number")
    again = TableEncoder.from_plain(encoder.to_plain()).encode(frame.iloc[::-1])
    np.testing.assert_array_equal(again.numbers[::-1], rows.numbers)


@pytest.mark.parametrize("name", [name for name, (_, kind) in SPELLINGS.items() if kind == "date"])
def test_dates_are_the_days_they_say(name):
    frame = pd.DataFrame({"x": list(SPELLINGS[name][0])})
    seconds = TableEncoder().fit(frame).encode(frame).numbers[:, 0]
    clock = 86_400 if ":" in name else 1
    expected = (DAYS - DAYS.min()).total_seconds().to_numpy()
    assert np.abs(seconds - seconds[DAYS.argmin()] - expected).max() < clock


def test_amounts_are_the_numbers_they_say():
    for name in ("-$5.00", "(1,234.00)", "1.234,00 EUR"):
        frame = pd.DataFrame({"x": SPELLINGS[name][0]})
        np.testing.assert_allclose(TableEncoder().fit(frame).encode(frame).numbers[:, 0], AMOUNTS, rtol=1e-12)


def test_new_numbers_are_spelled_alike():
    frame = pd.DataFrame({"x": SPELLINGS["1.234,00 EUR"][0]})
    encoder = TableEncoder().fit(frame)
    rows = Encoded(np.array([[-1234567.891], [0.004], [-0.001], [12.0]]), np.zeros((4, 0), np.int32))
    assert encoder.decode(rows)["x"].tolist() == ["-1.234.567,89 EUR", "0,00 EUR", "0,00 EUR", "12,00 EUR"]


@pytest.mark.parametrize(
    ("texts", "message", "kinds"),
    [
        (["03/04/2025", "07/06/2025"], "day or the month first, got '03/04/2025'", ("date:dmy", "date:mdy")),
        (["1,234", "2,345", "900"], "between thousands or a decimal mark", ("number:point", "number:comma")),
    ],
)
def test_what_a_column_leaves_open_is_refused_until_it_is_said(texts, message, kinds):
    frame = pd.DataFrame({"x": texts * 20, "y": np.arange(20 * len(texts)) % 7})
    with pytest.raises(ValueError, match=message) as refusal:
        describe_columns(frame)
    first, second = (TableEncoder({"x": kind}).fit(frame) for kind in kinds)
    assert all(repr(kind) in str(refusal.value) for kind in kinds)
    assert not np.array_equal(first.encode(frame).numbers, second.encode(frame).numbers)
    for encoder in (first, second):
        assert encoder.decode(encoder.encode(frame))["x"].tolist() == frame["x"].tolist()


def test_a_number_above_twelve_decides():
    for last, order in (("13/01/2025", "dmy"), ("01/13/2025", "mdy")):
        encoder = TableEncoder().fit(pd.DataFrame({"x": ["03/04/2025"] * 5 + ["05/06/2025", last]}))
        assert encoder.columns_[0].text["order"] == order


def test_two_digit_years_from_69_on_are_of_the_20th_century():
    frame = pd.DataFrame({"x": ["24.12.68", "24.12.69", "01.01.00"]})
    ticks = TableEncoder().fit(frame).encode(frame).numbers[:, 0]
    assert ticks.argsort().tolist() == [1, 2, 0]


def test_several_currencies_are_refused():
    frame = pd.DataFrame({"x": [f"${i}" if i % 2 else f"€{i}" for i in range(60)]})
    with pytest.raises(ValueError, match=r"expected amounts in one unit, got \$, €"):
        describe_columns(frame)


@pytest.mark.parametrize(
    "texts",
    [
        [f"{i:05d}" for i in range(0, 4000, 100)],  # postcodes
        [f"030 {i} {i + 7}" for i in range(100, 140)],  # telephone numbers
        [f"192.168.{i}.1" for i in range(40)],
        [f"2.{i}.0" for i in range(40)],  # versions
        ["31/02/2025", "24/12/2025"] * 20,  # not a date
        ["5%", "many"] * 20,
    ],
)
def test_other_text_stays_text(texts):
    kind = describe_columns(pd.DataFrame({"x": texts})).rows[0]["kind"]
    assert kind in ("identifier", "text", "category", "flag")


def test_words_for_missing_are_missing_among_dates_and_amounts():
    frame = pd.DataFrame({"x": [*SPELLINGS["24.12.2025"][0], "NA"], "y": [*SPELLINGS["12,3 %"][0], "-"]})
    rows = TableEncoder().fit(frame).encode(frame)
    assert np.isnan(rows.numbers[-1]).all()
    assert not np.isnan(rows.numbers[:-1]).any()
