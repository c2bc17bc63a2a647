"""Dates, money and per cent in everyday spelling: read by whole columns, written back as they were."""

import numpy as np
import pandas as pd
import pytest

from scorefield import describe_columns
from scorefield.data.encoding import Encoded, TableEncoder

RNG = np.random.default_rng(0)
DAYS = pd.to_datetime("2023-12-20") + pd.to_timedelta(RNG.integers(0, 700, 40), unit="D")
MOMENTS = DAYS + pd.to_timedelta(RNG.integers(0, 86_400, 40), unit="s")
AMOUNTS = np.round(RNG.normal(500, 900, 40), 2)


GERMAN_MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()  # noqa: SIM905


def half_day(moment):
    return f"{moment.hour % 12 or 12}:{moment.minute:02d}{'pm' if moment.hour > 11 else 'am'}"


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
    "12/24/2025 08:30:05 PM": (MOMENTS.strftime("%m/%d/%Y %I:%M:%S %p"), "date"),
    "24.12.2025, 8:30pm": ([f"{day:%d.%m.%Y}, {half_day(day)}" for day in MOMENTS], "date"),
    "24-Dec-2025": (DAYS.strftime("%d-%b-%Y"), "date"),
    "24-DEC-25": (DAYS.strftime("%d-%b-%y").str.upper(), "date"),
    "Dec 24, 2025": (DAYS.strftime("%b %d, %Y"), "date"),
    "24 December 2025": (DAYS.strftime("%d %B %Y"), "date"),
    "2025/1/9": ([f"{day.year}/{day.month}/{day.day}" for day in DAYS], "date"),
    "2025-Dec-24": (DAYS.strftime("%Y-%b-%d"), "date"),
    "24. Dezember 2025": ([f"{day.day}. {GERMAN_MONTHS[day.month - 1]} {day.year}" for day in DAYS], "date"),
    "2025-12-24 08:30:00 UTC": (DAYS.strftime("%Y-%m-%d 08:30:00 UTC"), "date"),
    "2025-12-24 08:30+02": (DAYS.strftime("%Y-%m-%d 08:%d+02"), "date"),
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
    "1 234": ([f"{abs(int(amount)):,}".replace(",", " ") for amount in AMOUNTS * 10], "whole number"),
    "12.5 kg": ([f"{abs(amount):.1f} kg" for amount in AMOUNTS], "number"),
    "8h": ([f"{abs(int(amount))}h" for amount in AMOUNTS], "whole number"),
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
        [f"{i} {i + 7}" for i in range(100, 140)],  # digits in groups, as many in each cell
        [f"{i}-Foo-2025" for i in range(10, 50)],
        [f"{i}-Jan-Feb" for i in range(10, 50)],
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


def test_offsets_that_change_with_summer_time_are_kept():
    berlin = MOMENTS.tz_localize("Europe/Berlin", ambiguous=True, nonexistent="shift_forward")
    texts = [moment.isoformat() for moment in berlin]
    assert {text[-6:] for text in texts} == {"+01:00", "+02:00"}
    frame = pd.DataFrame({"x": texts})
    encoder = TableEncoder().fit(frame)
    rows = encoder.encode(frame)
    assert encoder.columns_[0].kind == "date"
    assert encoder.decode(rows)["x"].tolist() == texts
    utc = berlin.tz_convert("UTC").tz_localize(None)
    expected = (utc - utc[0]).total_seconds().to_numpy()
    np.testing.assert_array_equal(rows.numbers[:, 0] - rows.numbers[0, 0], expected)
    between = Encoded((rows.numbers[:-1] + rows.numbers[1:]) / 2, rows.codes[1:])
    drawn = pd.to_datetime(encoder.decode(between)["x"], utc=True)
    summer = [text.endswith("+02:00") for text in encoder.decode(between)["x"]]
    true_offset = drawn.dt.tz_convert("Europe/Berlin").map(lambda moment: moment.utcoffset().total_seconds())
    assert np.mean((true_offset == 7200) == summer) > 0.9  # but near the nights of the change
    # Another table may have one of the offsets alone, or others, and the moments count.
    other = encoder.encode(pd.DataFrame({"x": [f"{day:%Y-%m-%dT%H:%M:%S}+00:00" for day in utc]}))
    np.testing.assert_array_equal(other.numbers, rows.numbers)


def test_moments_of_another_offset_are_converted_to_the_fitted_one():
    frame = pd.DataFrame({"x": [f"2024-01-{day:02d}T12:00:00+01:00" for day in range(1, 29)]})
    encoder = TableEncoder().fit(frame)
    summer = pd.DataFrame({"x": frame["x"].str.replace("T12:00:00+01", "T13:00:00+02", regex=False)})
    np.testing.assert_array_equal(encoder.encode(summer).numbers, encoder.encode(frame).numbers)


def test_whole_numbers_that_are_dates():
    numbers = DAYS.strftime("%Y%m%d").astype(int).to_numpy()
    frame = pd.DataFrame({"x": numbers, "gaps": np.where(np.arange(40) % 9, numbers, np.nan)})
    encoder = TableEncoder().fit(frame)
    rows = encoder.encode(frame)
    assert [column.kind for column in encoder.columns_] == ["date", "date"]
    assert "read as year, month and day" in describe_columns(frame).rows[0]["treatment"]
    pd.testing.assert_frame_equal(encoder.decode(rows), frame)
    expected = (DAYS - DAYS.min()).total_seconds().to_numpy()
    np.testing.assert_array_equal(rows.numbers[:, 0], expected)
    halves = Encoded((rows.numbers[:-1] + rows.numbers[1:]) / 2, rows.codes[1:])
    made = encoder.decode(halves)["x"]
    assert made.dtype == frame["x"].dtype
    pd.to_datetime(made.astype(str), format="%Y%m%d")  # raises for what is no date
    with pytest.raises(ValueError, match="expected dates such as 20251224"):
        encoder.encode(frame.replace(numbers[0], 20240230))


@pytest.mark.parametrize(
    "numbers",
    [np.arange(20240101, 20240101 + 40), np.arange(20240101, 20240131), DAYS[:15].strftime("%Y%m%d").astype(int)],
    ids=["counted beyond a month", "one month", "few"],
)
def test_whole_numbers_that_need_not_be_dates_stay_numbers(numbers):
    assert describe_columns(pd.DataFrame({"x": numbers})).rows[0]["kind"] != "date"


@pytest.mark.parametrize(("style", "wrong"), [("%Y-%m-%d", "2024-02-30"), ("%d.%m.%Y", "k.A."), ("%d-%b-%Y", "soon")])
def test_a_cell_that_is_no_date_is_named(style, wrong):
    texts = [*pd.date_range("2024-01-01", periods=40).strftime(style), wrong]
    with pytest.raises(ValueError, match=f"expected dates, as in most of its cells, got '{wrong}'"):
        describe_columns(pd.DataFrame({"x": texts}))


def test_words_for_missing_are_missing_among_iso_dates_and_plain_numbers():
    moments = [*MOMENTS.strftime("%Y-%m-%dT%H:%M:%SZ"), "NA"]
    frame = pd.DataFrame({"x": moments, "y": [*(f"{amount:.2f}" for amount in AMOUNTS), "-"]})
    rows = TableEncoder().fit(frame).encode(frame)
    assert np.isnan(rows.numbers[-1]).all()
    assert not np.isnan(rows.numbers[:-1]).any()


def test_several_measures_of_time_are_levels():
    frame = pd.DataFrame({"x": [f"{i % 30} {'days' if i % 2 else 'months'}" for i in range(90)]})
    assert describe_columns(frame).rows[0]["kind"] == "category"
