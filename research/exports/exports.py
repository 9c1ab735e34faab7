"""Write exports as a bank, a school and a laboratory have them, in a German and an American variant.

    python exports.py DIRECTORY [ROWS] [SEED]

Nothing is about real people: all values are drawn from a seeded generator. The Excel files need openpyxl.
"""

import csv
import random
import sys
from datetime import date, datetime, timedelta
from pathlib import Path

GERMAN_MONTHS = "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez".split()
AMERICAN_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def german(number, digits=2, grouped=True):
    text = f"{number:,.{digits}f}" if grouped else f"{number:.{digits}f}"
    return text.translate(str.maketrans(",.", ".,"))


def digits(rng, count):
    return "".join(rng.choice("0123456789") for _ in range(count))


def bank(rng, rows, is_german):
    """One row per booking; accounts repeat, and the balance runs on within an account."""
    if is_german:
        kinds = {"Lastschrift": -60, "Überweisung": -300, "Dauerauftrag": -450, "Gehalt/Rente": 2400,
                 "Gutschrift": 180, "Entgelt/Gebühren": -8, "Geldautomat": -120}
        header = ["Kontonummer", "BLZ", "IBAN Auftraggeber", "Buchungstag", "Valuta", "Buchungstext", "Verwendungszweck",
                  "Gegenkonto IBAN", "Betrag", "Währung", "Soll/Haben", "Saldo", "Gläubiger-ID", "Filiale"]
    else:
        kinds = {"POS DEBIT": -45, "ACH DEBIT": -220, "CHECK": -380, "PAYROLL": 2100, "DEPOSIT": 240,
                 "SERVICE FEE": -12, "ATM WITHDRAWAL": -100}
        header = ["Account Number", "Routing Number", "Posting Date", "Effective Date", "Transaction Type", "Description",
                  "Check Number", "Amount", "Debit/Credit", "Balance", "Branch", "ZIP"]
    accounts = [{"number": digits(rng, 10), "balance": rng.lognormvariate(7.5, 1), "branch": f"{rng.randint(1, 40):03d}",
                 "bank": rng.choice(["37040044", "50010517", "10070000", "70020270"] if is_german else
                                    ["021000021", "011401533", "091000019", "121000248"])} for _ in range(rows // 25)]
    words = ("Miete Rechnung Nr Kundennr Müller GmbH Strom Abschlag März Danke Versicherung Beitrag Bücher Straße" if is_german
             else "STORE PURCHASE ONLINE PMT UTIL INSURANCE RENT GROCERY GAS REF INV THANK YOU").split()
    table, total, day = [], 0.0, date(2024, 1, 2)
    for row in range(rows):
        account = rng.choice(accounts)
        day = date(2024, 1, 2) + timedelta(days=row * 360 // rows)
        value_day = day + timedelta(days=rng.choice([0, 0, 0, 1, 2]))
        kind = rng.choices(list(kinds), [30, 20, 8, 4, 10, 6, 12])[0]
        amount = round(kinds[kind] * rng.lognormvariate(0, 0.8), 2)
        account["balance"] += amount
        total += amount
        text = " ".join(rng.choice(words) for _ in range(rng.randint(2, 6))) + " " + digits(rng, 6)
        if is_german:
            iban = f"DE{rng.randint(10, 98)}{rng.choice(['37040044', '50010517', '10070000'])}{digits(rng, 10)}"
            other = "k.A." if kind in ("Geldautomat", "Entgelt/Gebühren") else iban
            creditor = f"DE98ZZZ{rng.randint(1, 60) * 1357:011d}" if kind == "Lastschrift" else "k.A."
            table.append([account["number"], account["bank"], f"DE21{account['bank']}{account['number']}",
                          f"{day:%d.%m.%Y}", f"{value_day:%d.%m.%Y}", kind, text, other, german(abs(amount)), "EUR",
                          "S" if amount < 0 else "H", german(account["balance"]), creditor, account["branch"]])
        else:
            money = f"(${-amount:,.2f})" if amount < 0 else f"${amount:,.2f}"
            balance = account["balance"]
            table.append([account["number"], account["bank"], f"{day:%m/%d/%Y}", f"{value_day:%m/%d/%Y}", kind, text,
                          str(1000 + row // 12) if kind == "CHECK" else "", money, "DR" if amount < 0 else "CR",
                          f"-${-balance:,.2f}" if balance < 0 else f"${balance:,.2f}", account["branch"],
                          rng.choice(["02139", "10001", "60614", "07030", "N/A"])])
    footer = [""] * len(header)
    footer[0] = "Summe" if is_german else "Total"
    footer[header.index("Betrag" if is_german else "Amount")] = german(total) if is_german else f"${total:,.2f}"
    return header, table, footer


def school(rng, rows, is_german):
    """One row per pupil."""
    if is_german:
        groups = ["Schüler"] * 7 + ["Leistung"] * 6 + ["Verwaltung"] * 5
        header = ["Schülernr", "Geburtsdatum", "Geschlecht", "Klasse", "PLZ", "Telefon", "Eintritt",
                  "Note Deutsch", "Note Mathe", "Durchschnitt", "Punkte VERA", "Versäumte Tage", "Anwesenheit",
                  "Lernmittelfreiheit", "Förderbedarf", "Sprache zu Hause", "Bus km", "Bemerkung"]
    else:
        groups = ["Student"] * 7 + ["Performance"] * 6 + ["Services"] * 5
        header = ["Student ID", "Birth Date", "Gender", "Grade Level", "ZIP", "Phone", "Enrolled",
                  "Math Grade", "ELA Grade", "GPA", "State Test", "Days Absent", "Attendance",
                  "Free Lunch", "IEP", "Home Language", "Bus Miles", "Notes"]
    letters = ["A+", "A", "A-", "B+", "B", "B-", "C+", "C", "C-", "D+", "D", "D-", "F"]
    marks = ["1+", "1", "1-", "2+", "2", "2-", "3+", "3", "3-", "4+", "4", "4-", "5+", "5", "5-", "6"]
    table = []
    for row in range(rows):
        level = rng.randint(5, 13) if is_german else rng.randint(0, 12)
        age = level + (6 if is_german else 5)
        born = date(2024 - age, 9, 1) - timedelta(days=rng.randint(0, 364))
        entered = date(2024 - rng.randint(0, min(level, 5)), 8, 26) + timedelta(days=rng.choice([0] * 9 + [rng.randint(1, 250)]))
        skill = rng.gauss(0, 1)
        scale = marks if is_german else letters

        def mark():
            rank = (0.45 - 0.16 * (skill + rng.gauss(0, 0.5))) * len(scale)
            return scale[max(0, min(len(scale) - 1, int(rank)))]

        absent = min(60, int(rng.expovariate(0.15)))
        attendance = 100 * (1 - absent / 180)
        score = "" if level < 3 else round(2500 + 90 * skill) if not is_german else round(500 + 100 * skill)
        if score != "" and rng.random() < 0.06:
            score = "krank" if is_german else "ABS"
        if is_german:
            table.append([f"S{100234 + row}", f"{born:%d.%m.%Y}", rng.choice("mwmwmwd"), f"{level}{rng.choice('abc')}",
                          rng.choice(["01067", "01069", "01099", "04109", "09111", "10115"]),
                          f"0{rng.choice(['351', '341', '371'])}/{rng.randint(200000, 9999999)}", f"{entered:%d.%m.%Y}",
                          mark(), mark(), german(max(1, min(6, 2.6 - 0.7 * skill)), 1), score, absent,
                          german(attendance, 1) + " %", "ja" if rng.random() < 0.3 else "nein",
                          rng.choices(["", "LRS", "Lernen", "Hören"], [85, 9, 4, 2])[0],
                          rng.choices(["Deutsch", "Türkisch", "Arabisch", "Polnisch", "k.A."], [70, 10, 9, 6, 5])[0],
                          german(rng.expovariate(0.2), 1) if rng.random() < 0.4 else "",
                          f"Gespräch mit Eltern am {rng.randint(1, 28)}.{rng.randint(1, 12)}." if rng.random() < 0.1 else ""])
        else:
            table.append([f"{4400120 + row:09d}", f"{born:%m/%d/%Y}", rng.choice("MFMFMFX"), "K" if level == 0 else str(level),
                          rng.choice(["02139", "02140", "02141", "01801", "02474", "10001"]),
                          f"({rng.choice([617, 781, 339])}) 555-{rng.randint(0, 9999):04d}", f"{entered:%m/%d/%Y}",
                          mark(), mark(), f"{max(0, min(4, 2.8 + 0.7 * skill)):.2f}", score, absent, f"{attendance:.1f}%",
                          "Y" if rng.random() < 0.4 else "N", rng.choices(["", "SLD", "SLI", "OHI"], [85, 8, 5, 2])[0],
                          rng.choices(["English", "Spanish", "Portuguese", "Haitian Creole", "Unknown"], [65, 18, 8, 5, 4])[0],
                          f"{rng.expovariate(0.3):.1f}" if rng.random() < 0.5 else "",
                          f"Parent conference {rng.randint(1, 12)}/{rng.randint(1, 28)}" if rng.random() < 0.1 else ""])
    return groups, header, table


# LOINC code, German and American analyte, units, mean, spread (logarithm), low and high limit, decimals, detection limits.
ANALYTES = [
    ("2823-3", "Kalium", "Potassium", "mmol/l", "mmol/L", 4.3, 0.12, 3.5, 5.1, 1, None, None),
    ("2951-2", "Natrium", "Sodium", "mmol/l", "mmol/L", 139, 0.025, 136, 145, 0, None, None),
    ("14682-9", "Kreatinin", "Creatinine", "µmol/l", "umol/L", 82, 0.3, 45, 104, 0, None, None),
    ("1988-5", "CRP", "C-reactive protein", "mg/l", "mg/L", 3, 1.6, 0, 5, 1, 0.5, None),
    ("718-7", "Hämoglobin", "Hemoglobin", "g/dl", "g/dL", 13.6, 0.12, 12, 16, 1, None, None),
    ("2276-4", "Ferritin", "Ferritin", "µg/l", "ng/mL", 120, 1.1, 30, 400, 0, None, 1000),
    ("3016-3", "TSH", "TSH", "mU/l", "mIU/L", 1.8, 0.7, 0.4, 4.0, 2, 0.01, None),
    ("1742-6", "GPT (ALT)", "ALT", "U/l", "U/L", 26, 0.6, 0, 50, 0, None, 1000),
]


def laboratory(rng, rows, is_german):
    """One row per result (long format); patients and orders repeat."""
    if is_german:
        header = ["PatNr", "Auftragsnr", "Geschlecht", "Geburtsjahr", "Station", "Entnahme", "Eingang", "Befund vom", "Material", "LOINC",
                  "Analyt", "Ergebnis", "Einheit", "Referenzbereich", "Flag", "Validiert"]
        wards = ["Innere", "Chirurgie", "Notaufnahme", "Ambulanz", "Pädiatrie"]
    else:
        header = ["patient_id", "accession", "sex", "birth_year", "ward", "collected_at", "received_at", "reported", "specimen", "loinc",
                  "analyte", "value", "unit", "reference_range", "flag", "status"]
        wards = ["MED", "SURG", "ED", "OP", "PEDS"]
    patients = [(rng.randint(1_000_000, 9_999_999), rng.choice("MW" if is_german else "MF"), rng.randint(1934, 2019))
                for _ in range(rows // 18)]
    table, order = [], 240000
    while len(table) < rows:
        number, sex, born = rng.choice(patients)
        order += rng.randint(1, 4)
        taken = datetime(2024, 1, 1, 6) + timedelta(minutes=rng.randint(0, 365 * 1440))
        received = taken + timedelta(minutes=rng.randint(8, 240))
        reported = received + timedelta(minutes=rng.randint(20, 3000))
        ward = rng.choice(wards)
        is_summer = 4 <= taken.month <= 10
        zone = ("+02:00" if is_summer else "+01:00") if is_german else ("-04:00" if is_summer else "-05:00")
        for loinc, de, us, unit_de, unit_us, mean, spread, low, high, places, least, most in rng.sample(ANALYTES, rng.randint(3, 8)):
            value = mean * rng.lognormvariate(0, spread)
            flag = "L" if value < low else "H" if value > high else ""
            form = (lambda x, p=places: german(x, p, False)) if is_german else (lambda x, p=places: f"{x:.{p}f}")
            text = form(value)
            if least and value < least:
                text = "<" + form(least)
            if most and value > most:
                text = ">" + form(most)
            if rng.random() < 0.03:
                text, flag = ("haemolytisch" if is_german else "HEMOLYZED"), ""
            reference = f"<{form(high)}" if low == 0 else f"{form(low)}-{form(high)}"
            if is_german:
                table.append([number, f"L{order}", sex, born, ward, taken.strftime("%Y-%m-%dT%H:%M:%S") + zone,
                              received.strftime("%d.%m.%Y %H:%M"),
                              f"{reported.day:02d}. {GERMAN_MONTHS[reported.month - 1]} {reported.year}",
                              "EDTA-Blut" if de == "Hämoglobin" else "Serum", loinc, de, text, unit_de, reference, flag,
                              rng.choice(["ja", "ja", "ja", "nein", "k.A."])])
            else:
                table.append([number, f"{order:08d}", sex, born, ward, taken.strftime("%Y-%m-%d %H:%M:%S") + zone,
                              received.strftime("%m/%d/%Y %I:%M %p"),
                              f"{reported.day:02d}-{AMERICAN_MONTHS[reported.month - 1]}-{reported.year}",
                              "Whole blood" if us == "Hemoglobin" else "Serum", loinc, us, text, unit_us, reference, flag,
                              rng.choice(["Final", "Final", "Final", "Corrected", "Prelim"])])
    return header, table[:rows]


def write_csv(path, rows, is_german, encoding):
    with open(path, "w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=";" if is_german else ",", lineterminator="\r\n").writerows(rows)


def write_excel(path, groups, header, table, is_german):
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.title = "Schüler" if is_german else "Students"
    sheet.append([group if group not in groups[:at] else None for at, group in enumerate(groups)])
    sheet.append(header)
    form = "%d.%m.%Y" if is_german else "%m/%d/%Y"
    date_columns, attendance = (1, 6), header.index("Anwesenheit" if is_german else "Attendance")
    for row in table:
        cells = list(row)
        for column in date_columns:
            cells[column] = datetime.strptime(row[column], form)
        cells[attendance] = round(float(row[attendance].replace("%", "").replace(",", ".").strip()) / 100, 3)
        sheet.append([None if cell == "" else cell for cell in cells])
        for column in date_columns:
            sheet.cell(sheet.max_row, column + 1).number_format = "DD.MM.YYYY" if is_german else "MM/DD/YYYY"
        sheet.cell(sheet.max_row, attendance + 1).number_format = "0.0%"
    notes = book.create_sheet("Legende" if is_german else "Legend")
    for line in [("Spalte", "Bedeutung"), ("Förderbedarf", "LRS: Lese-Rechtschreib-Schwäche")] if is_german else [
            ("Column", "Meaning"), ("IEP", "SLD: specific learning disability")]:
        notes.append(line)
    book.save(path)


def main(directory, rows=2400, seed=1):
    out = Path(directory)
    out.mkdir(parents=True, exist_ok=True)
    for is_german, variant in ((True, "german"), (False, "american")):
        # One generator per export, so that a change of one export does not affect the others.
        rng = random.Random(f"{seed} bank {variant}")
        header, table, footer = bank(rng, rows, is_german)
        write_csv(out / f"bank-{variant}.csv", [header, *table, footer], is_german, "cp1252" if is_german else "utf-8")
        rng = random.Random(f"{seed} school {variant}")
        groups, header, table = school(rng, rows, is_german)
        write_csv(out / f"school-{variant}.csv", [header, *table], is_german, "cp1252" if is_german else "utf-8-sig")
        write_excel(out / f"school-{variant}.xlsx", groups, header, table, is_german)
        rng = random.Random(f"{seed} laboratory {variant}")
        header, table = laboratory(rng, rows, is_german)
        write_csv(out / f"laboratory-{variant}.csv", [header, *table], is_german, "cp1252" if is_german else "utf-8")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
