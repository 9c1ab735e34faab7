"""Writes the tables of this folder: small synthetic tables that reproduce public reports.

Usage: python make.py. The repository contains the tables, so tests need no Python. expectations.json has the source
and the report of each table.
"""

import csv
import datetime
import io
import random
import uuid
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
WARDS = ["east", "north", "south"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


def save(name: str, text: str, encoding: str = "utf-8") -> None:
    (HERE / name).write_bytes(text.encode(encoding))


def lines(rows: list[list[object]], delimiter: str = ",", **dialect) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n", **dialect).writerows(rows)
    return out.getvalue()


def plain(name: str, rows: list[list[object]]) -> None:
    save(f"plain/{Path(name).stem}.csv", lines(rows))


def table(name: str, header: list[str], count: int, row: Callable[[int, random.Random], list[object]]) -> list[list[object]]:
    """The rows of a table, with the header; the seed is the table's name."""
    rng = random.Random(name)
    return [header, *([*row(number, rng)] for number in range(1, count + 1))]


def put(rows: list[list[object]], column: int, cells: dict[int, object]) -> None:
    """Replaces cells by their row, counted from 1."""
    for number, cell in cells.items():
        rows[number][column] = cell


def every(first: int, step: int, count: int) -> list[int]:
    return [first + step * index for index in range(count)]


def day(rng: random.Random, first: int, last: int) -> datetime.date:
    start = datetime.date(first, 1, 1)
    return start + datetime.timedelta(days=rng.randrange((datetime.date(last, 12, 31) - start).days + 1))


def grouped(value: float, mark: str, decimals: int, point: str = ".") -> str:
    whole, _, rest = f"{value:,.{decimals}f}".partition(".")
    return whole.replace(",", mark) + (point + rest if rest else "")


# --- numbers ---

rows = table("sign-among-thousands", ["amount", "ward"], 400, lambda n, r: [grouped(r.uniform(100, 9000), ",", 2), r.choice(WARDS)])
put(rows, 0, {n: f"-{0.1 + n / 100:.2f}" for n in every(7, 13, 30)})
save("sign-among-thousands.csv", lines(rows))

rows = table("comma-negatives", ["change", "level"], 300, lambda n, r: [f"{r.gauss(0, 3):.1f}".replace(".", ","), f"{r.uniform(10, 99):.1f}".replace(".", ",")])
rows = [[cell.replace("-0,0", "0,0") for cell in row] for row in rows]
save("comma-negatives.csv", lines(rows, ";"))
plain("comma-negatives.csv", rows)

rows = table("parentheses", ["balance", "branch"], 400, lambda n, r: [grouped(r.randrange(1, 9000), ",", 0), r.choice("ABC")])
put(rows, 0, {n: f"({grouped(3 * n + 11, ',', 0)})" for n in every(4, 6, 60)})
save("parentheses.csv", lines(rows))

rows = table("nbsp-thousands", ["montant", "taux"], 300, lambda n, r: [grouped(r.uniform(20, 90000), "\u00a0", 2, ","), grouped(r.uniform(0, 9), "", 1, ",")])
save("nbsp-thousands.csv", lines(rows, ";"))
plain("nbsp-thousands.csv", rows)

rows = table("unicode-minus", ["text", "sum"], 300, lambda n, r: [r.choice(["rent", "food", "pay"]), f"{r.uniform(1, 900):.2f}".replace(".", ",")])
put(rows, 1, {n: "\u2212" + rows[n][1] for n in every(3, 3, 90)})
save("unicode-minus.csv", lines(rows, ";"))
plain("unicode-minus.csv", rows)

rows = table("positive-only", ["dose", "level"], 300, lambda n, r: [f"{r.expovariate(0.3) + 0.1:.1f}", r.randrange(0, 40)])
save("positive-only.csv", lines(rows))

rows = table("late-decimals", ["a", "b"], 500, lambda n, r: [r.randrange(1, 200), r.randrange(1, 60) if n <= 350 else f"{r.randrange(1, 60)}.{r.randrange(1, 10)}"])
save("late-decimals.csv", lines(rows))

rows = table("exponents", ["concentration", "ward"], 300, lambda n, r: [f"{r.uniform(1, 9.9994):.3f}e-{r.randrange(4, 8)}", r.choice(WARDS)])
save("exponents.csv", lines(rows))

rows = table("eurostat-flags", ["geo", "rate"], 400, lambda n, r: [r.choice(["AT", "BE", "DE", "HR", "SI"]), f"{r.uniform(1, 30):.1f}"])
put(rows, 1, {n: ":" for n in every(9, 15, 25)})
put(rows, 1, {n: f"{10 + n / 10:.1f} {'b' if n % 2 else 'bu'}" for n in every(12, 31, 12)})
save("eurostat-flags.tsv", lines(rows, "\t"))
plain("eurostat-flags.tsv", rows)

# --- special values and exceptions ---

rows = table("int-min", ["pid7", "year"], 400, lambda n, r: [r.randrange(1, 10), r.choice([2016, 2018, 2020])])
put(rows, 0, {n: -2147483648 for n in every(5, 9, 40)})
save("int-min.csv", lines(rows))

rows = table("survey-codes", ["enrollment", "level"], 500, lambda n, r: [r.randrange(12, 4000), r.choice(["primary", "secondary"])])
put(rows, 0, {n: -1 for n in every(3, 14, 30)})
put(rows, 0, {n: -2 for n in every(5, 14, 25)})
put(rows, 0, {n: -3 for n in every(8, 14, 22)})
save("survey-codes.csv", lines(rows))

rows = table("several-markers", ["crp", "ward"], 400, lambda n, r: [f"{r.uniform(0.2, 90):.1f}", r.choice(WARDS)])
put(rows, 0, {n: "NA" for n in every(11, 17, 20)})
put(rows, 0, {n: " NA" for n in every(14, 17, 9)})
put(rows, 0, {n: "n/a" for n in every(16, 17, 7)})
save("several-markers.csv", lines(rows))

rows = table("namibia", ["iso2", "continent", "people"], 500, lambda n, r: [r.choice(["AO", "BW", "NA", "ZA", "ZM"]), "AF", r.randrange(1000, 60000)])
put(rows, 1, {n: "NA" for n in every(2, 9, 50)})
save("namibia.csv", lines(rows))

rows = table("zero-dates", ["last_login", "role"], 500, lambda n, r: [day(r, 2019, 2023), r.choice(["admin", "user"])])
put(rows, 0, {n: "0000-00-00" for n in every(4, 7, 60)})
save("zero-dates.csv", lines(rows))

rows = table("suppressed-counts", ["births", "county"], 500, lambda n, r: [r.randrange(20, 5000), r.choice(["A", "B", "C", "D"])])
put(rows, 0, {n: "**" for n in every(6, 11, 40)})
put(rows, 0, {n: "-" for n in every(9, 11, 24)})
save("suppressed-counts.csv", lines(rows))

rows = table("count-intervals", ["count", "state"], 500, lambda n, r: [r.randrange(51, 3000), r.choice(["GA", "WY", "MT"])])
put(rows, 0, {n: "1-9" for n in every(2, 10, 45)})
put(rows, 0, {n: "10-50" for n in every(7, 10, 30)})
save("count-intervals.csv", lines(rows))

# --- dates ---

def zeros(n: int, r: random.Random) -> list[object]:
    return [f"{day(r, 2020, 2025):%d%m%Y}", f"{(n * 15451 + 7) % 1000000:06}", r.choice(["02116", "02139", "10001", "60601"])]


save("leading-zeros.csv", lines(table("leading-zeros", ["visit", "code", "zip"], 400, zeros)))


def long_month(n: int, r: random.Random) -> list[object]:
    date = day(r, 2010, 2018)
    return [f"{MONTHS[date.month - 1]} {date.day}, {date.year}", r.randrange(1, 6)]


save("long-month.csv", lines(table("long-month", ["updated", "rating"], 400, long_month)))

rows = table("row-of-ones", ["group", "date", "height"], 400, lambda n, r: [r.choice(["a", "b"]), f"{day(r, 2023, 2024):%Y/%m/%d}", r.randrange(150, 200)])
rows.append(["1", "1", "1"])
save("row-of-ones.csv", lines(rows))

rows = table("partial-dates", ["inception", "ward"], 500, lambda n, r: [day(r, 1990, 2023), r.choice(WARDS)])
put(rows, 0, {n: str(rows[n][0])[:7] for n in every(10, 8, 55)})
put(rows, 0, {n: str(rows[n][0])[:4] for n in every(13, 16, 30)})
save("partial-dates.csv", lines(rows))

rows = table("quarters", ["time", "week", "value"], 600, lambda n, r: [f"{2017 + n % 24 // 4}-Q{n % 4 + 1}", f"{2020 + n % 2}-W{r.randrange(1, 53):02}", f"{r.uniform(50, 150):.1f}"])
save("quarters.csv", lines(rows))


def comment(n: int, r: random.Random) -> list[object]:
    names = ["Carroll", "Liberty", "Okafor", "Sato", "Weber", "Rossi"]
    date = day(r, 2009, 2012)
    return [f"{r.choice(['per', 'checked by', 'fixed,'])} {r.choice(names)} {date.month}/{date.day}/{date.year} no. {n}", r.choice(["open", "done"])]


save("dates-in-text.csv", lines(table("dates-in-text", ["comment", "state"], 300, comment)))

apps = ["00_xalancbmk_base", "01_mcf_base", "02_lu.C", "03_astar_base", "04_h264ref_base", "05_leslie3d_base", "06_povray_base", "07_cg.C"]
rows = table("not-a-date", ["core", "app", "subplot"], 400, lambda n, r: [r.randrange(8), r.choice(apps), f"{r.choice([21, 23, 31, 39, 40, 41])}_{r.choice([1, 10, 100])}_{r.randrange(1, 5)}"])
save("not-a-date.csv", lines(rows))

rows = table("citations", ["regulation", "fine"], 300, lambda n, r: [f"{r.randrange(700, 760)}({r.randrange(10, 60)}-{r.randrange(1, 9)}){r.randrange(10, 40)}{r.choice('ABC')}-{r.randrange(1, 9)}.{r.randrange(1, 9)}({r.choice('ABC')})", r.randrange(100, 5000)])
save("citations.csv", lines(rows))

# --- datetimes, times and durations ---

moment = lambda r, first, last: datetime.datetime.combine(day(r, first, last), datetime.time()) + datetime.timedelta(seconds=r.randrange(86400))
rows = table("us-twelve-hours", ["created", "borough"], 400, lambda n, r: [f"{moment(r, 2014, 2015):%m/%d/%Y %I:%M:%S%p}", r.choice(["BRONX", "QUEENS"])])
save("us-twelve-hours.csv", lines(rows))


def offset(n: int, r: random.Random) -> list[object]:
    at = moment(r, 2023, 2023)
    summer = datetime.datetime(2023, 3, 26, 2) <= at < datetime.datetime(2023, 10, 29, 3)
    return [f"{at:%Y-%m-%dT%H:%M:%S}+0{2 if summer else 1}:00", f"{r.uniform(0, 40):.2f}"]


save("summer-time.csv", lines(table("summer-time", ["at", "load"], 500, offset)))

rows = table("oracle-dates", ["date_of_birth", "created"], 400, lambda n, r: [f"{day(r, 1940, 2005)} 00:00:00.0", f"{moment(r, 2019, 2020):%Y-%m-%d %H:%M:%S}.0"])
save("oracle-dates.csv", lines(rows))


def cuff(n: int, r: random.Random) -> list[object]:
    minutes = r.choice([r.randrange(360, 720), r.randrange(720, 780), r.randrange(780, 1439), r.randrange(0, 59)])
    hour = minutes // 60
    return [f"{(hour + 11) % 12 + 1}:{minutes % 60:02} {'PM' if hour >= 12 else 'AM'}", r.randrange(95, 180), r.choice(["A", "M", "AM"])]


save("blood-pressure.csv", lines(table("blood-pressure", ["taken", "systolic", "mode"], 400, cuff)))


def iso_duration(n: int, r: random.Random) -> list[object]:
    hours, minutes = r.randrange(0, 5), r.randrange(0, 60)
    text = "PT" + (f"{hours}H" if hours else "") + (f"{minutes}M" if minutes or not hours else "")
    return [text, r.choice(["web", "app"])]


save("iso-durations.csv", lines(table("iso-durations", ["watched", "client"], 400, iso_duration)))


def clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


rows = table("after-midnight", ["arrival_time", "stop_sequence", "elapsed"], 500, lambda n, r: [clock(r.randrange(5 * 60, 28 * 60) * 60), r.randrange(1, 40), clock(r.randrange(0, 130 * 60) * 60)])
save("after-midnight.csv", lines(rows))

rows = table("timedeltas", ["stay", "ward"], 400, lambda n, r: [f"{r.randrange(0, 9)} days {clock(r.randrange(86400))}", r.choice(WARDS)])
save("timedeltas.csv", lines(rows))

# --- codes, identifiers and persons ---

rng = random.Random("persons")
people, phones = rng.sample(range(32000000, 33999999), 400), rng.sample(range(110000000, 129999999), 400)
rows = table("phone-numbers", ["PERSONID", "PHONEID", "plan"], 400, lambda n, r: [people[n - 1], phones[n - 1], r.choice(["S", "M", "L"])])
save("phone-numbers.csv", lines(rows))

rows = table("three-keys", ["guid", "record", "serial", "ward"], 300, lambda n, r: [str(uuid.UUID(int=r.getrandbits(128), version=4)).upper(), f"REC-{n * 37 % 1000:03}-{r.choice('KX')}{n % 10}{n // 10 % 10}", f"{r.randrange(10**9, 10**10)}/{n:03}", r.choice(WARDS)])
save("three-keys.csv", lines(rows))

rows = table("thirty-digits", ["barcode", "weight"], 300, lambda n, r: [str(r.randrange(10**32, 10**33)), f"{r.uniform(0.5, 30):.2f}"])
save("thirty-digits.csv", lines(rows))


def taxi(n: int, r: random.Random) -> list[object]:
    return [r.choice([1, 2, 6]), 70000000 + r.randrange(120) * 7919, f"{r.uniform(3, 80):.2f}"]


save("vendors-and-taxpayers.csv", lines(table("vendors-and-taxpayers", ["vendor_id", "taxpayer_id", "fare"], 500, taxi)))

holders = ["Nia Fontaine", "Lou Abernathy", "Kim Oduya", "Sam Trelawny", "Ada Pokorny", "Max Ilves", "Eve Castellan", "Ola Brandvold", "Ben Quigley", "Zoe Haverford"]
accounts = [f"ACCT-{index * 271828 % 65536 + 65536:08X}" for index in range(1, 11)]


def payment(n: int, r: random.Random) -> list[object]:
    who = r.randrange(10)
    return [accounts[who], holders[who], r.choice(["dining", "travel", "fuel"]), f"{r.uniform(2, 400):.2f}"]


save("accounts.csv", lines(table("accounts", ["acct_id", "cardholder", "merchant_cat", "txn_amount"], 500, payment)))

remarks = ["egg", "fledged", "nest", "ring", "bird", "left", "seen", "twice", "wing", "cold"]
rows = table("comments", ["species", "comments"], 400, lambda n, r: [r.choice(["Adelie", "Gentoo"]), ""])
put(rows, 1, {n: "Nest never observed with full clutch." for n in every(5, 11, 34)})
rng = random.Random("comments")
put(rows, 1, {n: " ".join(rng.sample(remarks, 5)).capitalize() + "." for n in every(8, 23, 15)})
save("comments.csv", lines(rows))

# --- categories ---

rows = table("ones", ["a", "flag", "grade"], 300, lambda n, r: [r.choice(["x", "y"]), 1, r.choice(["great", "poor"])])
save("ones.csv", lines(rows))

rows = table("mixed-case", ["consent", "arm"], 300, lambda n, r: [r.choice(["TRUE", "True", "true", "FALSE", "False", "false"]), r.choice("AB")])
save("mixed-case.csv", lines(rows))

exotic = ["Axolotl", "Capybara", "Chameleon", "Chinchilla", "Degu", "Fennec", "Hedgehog", "Iguana", "Macaw", "Skink", "Tarantula", "Terrapin"]
rows = table("rare-species", ["patient_type", "is_examined", "weight_kg"], 400, lambda n, r: [r.choice(["Cat", "Cat", "Dog"]), r.choice(["True", "False"]), f"{r.uniform(0.5, 40):.1f}"])
put(rows, 0, {n: exotic[n % 12] for n in every(6, 13, 30)})
save("rare-species.csv", lines(rows))

# --- files ---

names = ["Surname, Firstname", 'foo ("foo")', "plain"]
rows = table("backslash-commas", ["id", "name"], 300, lambda n, r: [r.randrange(100, 999), r.choice(names)])
text = '"id","name"\n' + "".join(f'"{a}","{b}"\n' for a, b in (
    (a, b.replace('"', '\\"').replace(",", "\\,")) for a, b in rows[1:]))
save("backslash-commas.csv", text)
plain("backslash-commas.csv", rows)

rows = table("bare-quote", ["stop", "zone"], 300, lambda n, r: [r.choice(["Main St", "Park Av", "Harbour"]), r.randrange(1, 9)])
put(rows, 0, {n: '12" Main' for n in every(50, 9, 24)})
save("bare-quote.csv", "".join(f"{a},{b}\n" for a, b in rows))
plain("bare-quote.csv", rows)

rows = table("hash-values", ["colour", "name", "n"], 400, lambda n, r: [r.choice(["#ff0000", "#00ff00", "#1e90ff"]), r.choice(["red, dark", "green", "blue"]), r.randrange(1, 100)])
save("hash-values.csv", lines(rows))

rows = table("late-quotes", ["owner", "firm", "n"], 600, lambda n, r: [r.choice(["Bob", "Ann"]), r.choice(["Acme", "Bens Co."]), r.randrange(1, 90)])
put(rows, 1, {n: "Beth, Bens. Co." for n in range(571, 596)})
save("late-quotes.csv", lines(rows))

rows = table("short-rows", ["c1", "c2", "c3", "c4"], 300, lambda n, r: [r.choice("ab"), r.randrange(9), r.randrange(99), r.choice("xy")])
text = lines(rows).splitlines()
text[120] = ",".join(text[120].split(",")[:3])
text[240] = ",".join(text[240].split(",")[:2])
save("short-rows.csv", "\n".join(text) + "\n")

rows = table("carriage-returns", ["age", "ward", "bmi"], 300, lambda n, r: [r.randrange(18, 90), r.choice(WARDS), f"{r.uniform(16, 40):.1f}"])
save("carriage-returns.csv", lines(rows, "\t").replace("\n", "\r"))
plain("carriage-returns.csv", rows)


def thesis(n: int, r: random.Random) -> list[object]:
    return [f"Turbulence in blade passage {n}", f"Marchetti, P. {n}", 1970 + r.randrange(40), day(r, 1990, 2010), r.choice(["Thesis", "Report"])]


rows = table("no-header", [], 300, thesis)
save("no-header.csv", lines(rows[1:]))

rows = table("longer-header", ["age", "workclass", "hours"], 300, lambda n, r: [r.randrange(17, 91), r.choice(["Private", "Public"]), r.randrange(1, 99)])
text = lines(rows).splitlines()
save("longer-header.csv", text[0] + ",\n" + "\n".join(text[1:]) + "\n")
plain("longer-header.csv", rows)

# --- encodings ---

rows = table("utf16-without-mark", ["name", "age"], 300, lambda n, r: [r.choice(["Köln", "Bonn", "Łódź"]), r.randrange(18, 90)])
save("utf16-without-mark.csv", lines(rows), "utf-16-le")
plain("utf16-without-mark.csv", rows)

rows = table("polish-bank", ["miasto", "kwota"], 300, lambda n, r: [r.choice(["Łódź", "Gdańsk", "Częstochowa", "Świdnica"]), f"{r.uniform(1, 900):.2f}".replace(".", ",")])
save("polish-bank.csv", lines(rows, ";"), "cp1250")
plain("polish-bank.csv", rows)

rows = table("cyrillic", ["город", "возраст"], 300, lambda n, r: [r.choice(["Москва", "Казань", "Самара"]), r.randrange(18, 90)])
save("cyrillic.csv", lines(rows, ";"), "cp1251")
plain("cyrillic.csv", rows)

rows = table("quoted-mark", ["ID", "Name", "Age"], 300, lambda n, r: [n, r.choice(["a", "b"]), r.randrange(18, 90)])
save("quoted-mark.csv", "\ufeff" + lines(rows, quoting=csv.QUOTE_ALL))
plain("quoted-mark.csv", rows)

# --- relations between columns ---


def later(date: datetime.date, days: int) -> datetime.date:
    return date + datetime.timedelta(days=days)


def years(born: datetime.date, at: datetime.date) -> int:
    return at.year - born.year - ((at.month, at.day) < (born.month, born.day))


def life(n: int, r: random.Random) -> list[object]:
    born = day(r, 1910, 1990)
    died = later(born, r.randrange(365 * 20, 365 * 95))
    return [born, died, years(born, died)]


save("age-at-death.csv", lines(table("age-at-death", ["date_of_birth", "date_of_death", "age"], 400, life)))


def courses(n: int, r: random.Random) -> list[object]:
    low = day(r, 2008, 2018)
    return [f"{low:%d %b, %y}", f"{later(low, r.randrange(0, 1500)):%d %b, %y}", r.choice("XYZ")]


save("two-digit-order.csv", lines(table("two-digit-order", ["low_col", "high_col", "level"], 400, courses)))


def placement(n: int, r: random.Random) -> list[object]:
    start = day(r, 2012, 2021)
    end = later(start, r.randrange(30, 900))
    return [start if r.random() < 0.8 else "", end if r.random() < 0.7 else "", r.choice(["yes", "no"])]


save("optional-dates.csv", lines(table("optional-dates", ["start_date", "end_date", "placed"], 500, placement)))

currencies = {"USA": "USD", "Germany": "EUR", "France": "EUR", "Japan": "JPY", "Poland": "PLN"}


def payments(n: int, r: random.Random) -> list[object]:
    country = r.choice(list(currencies))
    return [country, currencies[country], f"{r.uniform(5, 500):.2f}"]


save("country-currency.csv", lines(table("country-currency", ["country", "currency", "amount"], 500, payments)))

cities = {"Vienna": "Austria", "Graz": "Austria", "Linz": "Austria", "Milan": "Italy", "Turin": "Italy", "Lyon": "France", "Lille": "France"}


def shift(n: int, r: random.Random) -> list[object]:
    city = r.choice(list(cities))
    start = datetime.datetime.combine(day(r, 2022, 2023), datetime.time()) + datetime.timedelta(minutes=10 * r.randrange(144))
    return [city, start, start + datetime.timedelta(minutes=10 * r.randrange(1, 72)), cities[city]]


save("city-country.csv", lines(table("city-country", ["city", "start_time", "end_time", "country"], 600, shift)))


def account(n: int, r: random.Random) -> list[object]:
    kind = r.choice([1, 2])
    return [kind, r.randrange(100, 9000) if kind == 1 else "", f"{r.uniform(0, 20):.2f}" if kind == 1 else ""]


save("null-by-type.csv", lines(table("null-by-type", ["type", "limit", "rate"], 500, account)))


def depressed(n: int, r: random.Random) -> list[object]:
    smoke = r.choice(["YES", "NO", "NO"])
    return [0 if smoke == "YES" else r.randrange(8), smoke]


save("depress-smoke.csv", lines(table("depress-smoke", ["depress", "smoke"], 900, depressed)))

streams = {"HAVO": ["HAVO"], "VWO": ["VWO"], "MAVO": ["BRJ", "VMBO"], "MAVO/HAVO": ["BRJ", "VMBO", "HAVO"]}


def school(n: int, r: random.Random) -> list[object]:
    structure = r.choice(list(streams))
    return [structure, r.choice(streams[structure]), r.randrange(1, 60)]


save("school-types.csv", lines(table("school-types", ["onderwijsstructuur", "owsoort", "leerlingen"], 900, school)))


def stay(n: int, r: random.Random) -> list[object]:
    rate, fee = r.randrange(6000, 30000), r.choice([0, 0, r.randrange(500, 4000)])
    return [r.choice(["BASIC", "DELUXE", "SUITE"]), f"{rate / 100:.2f}", f"{fee / 100:.2f}", f"{(rate + fee) / 100:.2f}"]


save("hotel-rates.csv", lines(table("hotel-rates", ["room_type", "room_rate", "amenities_fee", "total_rate"], 500, stay)))


def billing(n: int, r: random.Random) -> list[object]:
    parts = [r.choice([0, r.randrange(1, 3000)]) for _ in range(3)]
    return [1000 + n, sum(parts), *parts]


save("billing-split.csv", lines(table("billing-split", ["emp_id", "billing", "saving", "current", "expense"], 400, billing)))


def marriage(n: int, r: random.Random) -> list[object]:
    born = day(r, 1940, 1995)
    married = later(born, r.randrange(365 * 18, 365 * 40)) if r.random() < 0.6 else ""
    income = r.randrange(800, 6000) if married and r.random() < 0.8 else ""
    return [born, married, income]


save("marriage.csv", lines(table("marriage", ["birth_date", "marriage_date", "spouse_income"], 500, marriage)))


def pressure(n: int, r: random.Random) -> list[object]:
    measured = r.random() < 0.7
    return [r.choice(WARDS), r.randrange(95, 185) if measured else "", r.randrange(50, 110) if measured else ""]


save("null-together.csv", lines(table("null-together", ["ward", "systolic", "diastolic"], 500, pressure)))


def pregnancy(n: int, r: random.Random) -> list[object]:
    sex = r.choice("FM")
    week = r.randrange(4, 41) if sex == "F" and r.random() < 0.4 else ""
    return [sex, week, r.randrange(18, 46)]


save("not-relevant.csv", lines(table("not-relevant", ["sex", "pregnancy_week", "age"], 600, pregnancy)))


def encounter(n: int, r: random.Random) -> list[object]:
    born = day(r, 1930, 2018)
    start = datetime.datetime.combine(later(born, r.randrange(0, 365 * 2)), datetime.time()) + datetime.timedelta(minutes=r.randrange(1440))
    return [f"{start:%Y-%m-%dT%H:%M:00Z}", born, r.choice(["ear", "eye"])]


save("encounters.csv", lines(table("encounters", ["encounter_start", "birthdate", "reason"], 500, encounter)))


def member(n: int, r: random.Random) -> list[object]:
    age = r.randrange(0, 90)
    born = 2019 - age - r.choice([0, 1])
    return [r.choice(["head", "child", "other"]), age, born + (5 if n % 80 == 7 else 0)]


save("household.csv", lines(table("household", ["role", "age", "year_of_birth"], 400, member)))


def person(n: int, r: random.Random) -> list[object]:
    born = day(r, 1930, 2001)
    return [born, years(born, datetime.date(2020, 1, 1)), r.choice("FM")]


save("age-today.csv", lines(table("age-today", ["date_of_birth", "age", "sex"], 400, person)))


def kinetics(n: int, r: random.Random) -> list[object]:
    first = f"{r.uniform(0.1, 9):.2f}"
    return [first, f"{r.uniform(0.1, 9):.2f}", first]


save("duplicate-column.csv", lines(table("duplicate-column", ["conc_1", "conc_2", "conc_1_copy"], 300, kinetics)))


def contract(n: int, r: random.Random) -> list[object]:
    dates = [day(r, 2010, 2012)]
    for _ in range(4):
        dates.append(later(dates[-1], r.randrange(0, 900)))
    return dates


chain = ["purchase_date", "start_date", "end_date", "expiration_date", "termination_date"]
save("contract-chain.csv", lines(table("contract-chain", chain, 400, contract)))

rng = random.Random("products")
products = {10000 + number: rng.choice(["web", "shop", "phone"]) for number in rng.sample(range(90000), 12)}


def order(n: int, r: random.Random) -> list[object]:
    product = r.choice(list(products))
    return [product, products[product], f"{r.uniform(1, 90):.2f}"]


save("product-source.csv", lines(table("product-source", ["product-id", "source", "price"], 900, order)))


def status(n: int, r: random.Random) -> list[object]:
    which = r.randrange(3)
    return [*(int(which == place) for place in range(3)), r.randrange(1, 400)]


save("one-hot.csv", lines(table("one-hot", ["status_active", "status_inactive", "status_on_hold", "days"], 600, status)))

units = {"glucose": "mg/dL", "sodium": "mmol/L", "potassium": "mmol/L", "crp": "mg/L"}


def lab(n: int, r: random.Random) -> list[object]:
    test = r.choice(list(units))
    return [test, f"{r.uniform(1, 200):.1f}", units[test]]


save("lab-units.csv", lines(table("lab-units", ["test", "value", "unit"], 800, lab)))
