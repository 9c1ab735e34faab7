//! A made-up export of a hospital's program, for end-to-end tests of drafts, runs and reports.

/// Names of the wards. Some letters are one byte in Windows-1252 and two bytes in UTF-8.
pub const WARDS: [&str; 4] = [
    "Innere Medizin",
    "Chirurgie",
    "Gyn\u{e4}kologie",
    "K\u{fc}nstliche Ern\u{e4}hrung",
];

/// Percentage of records that have no age.
pub const WITHOUT_AGE: u32 = 5;

/// A linear congruential generator, so that every run makes the same table.
struct Draw(u32);

impl Draw {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % bound
    }

    /// Draws a laboratory value in tenths. The distribution is skewed: most values are small, and a
    /// few are very large.
    fn laboratory(&mut self) -> u32 {
        let bell: u32 = (0..6).map(|_| self.below(1_000)).sum();
        // At most e^8 tenths; half of the values are below e^4.
        (f64::from(bell) / 750.0).exp().round() as u32
    }
}

/// Returns a table of `records` stays, with semicolons between fields: an identifier, two times, a
/// ward, an age with gaps, a weight and a skewed laboratory value with decimal commas, a postcode,
/// a diagnosis, and free text.
pub fn export(records: u32) -> String {
    let mut draw = Draw(1);
    let mut csv = "fall;aufnahme;entlassung;station;alter;gewicht;crp;plz;icd;notiz\n".to_owned();
    for row in 0..records {
        csv.push_str(&stay(row, &mut draw));
    }
    csv
}

/// Returns one stay as a line of the table.
fn stay(row: u32, draw: &mut Draw) -> String {
    let (month, day, hour, minute) = (
        draw.below(12) + 1,
        draw.below(18) + 1,
        draw.below(24),
        draw.below(60),
    );
    // The mean stay depends on the ward, and no stay ends after the 28th of its month.
    let ward = draw.below(4);
    let stay = 1 + draw.below(60) + 40 * ward;
    let (hours, later) = (24 * day + hour + stay, draw.below(60));
    let later = if stay > 0 { later } else { minute };
    let age = match draw.below(100) {
        percent if percent < WITHOUT_AGE => String::new(),
        _ => (18 + draw.below(50) + 8 * ward).to_string(),
    };
    let (weight, laboratory) = (450 + draw.below(500) + 60 * ward, draw.laboratory());
    let postcode = 1_000 + draw.below(150) * 60;
    let code = draw.below(100);
    let diagnosis = format!(
        "{}{:02}.{}",
        ["A", "C", "I", "J"][(code / 25) as usize],
        code % 25,
        draw.below(4)
    );
    format!(
        "P{:05};{day:02}.{month:02}.2023 {hour:02}:{minute:02};{:02}.{month:02}.2023 {:02}:{later:02};\
         {};{age};{},{};{},{};{postcode:05};{diagnosis};Patient {row} klagt \u{fc}ber Schmerzen\n",
        row * 31 % 99_991,
        hours / 24,
        hours % 24,
        WARDS[ward as usize],
        weight / 10,
        weight % 10,
        laboratory / 10,
        laboratory % 10,
    )
}

/// Returns [`export`] in Windows-1252, which has all letters of the table.
pub fn one_byte_a_letter(records: u32) -> Vec<u8> {
    // Below U+0100 and outside U+0080 to U+009F, Windows-1252 has the code points of Unicode.
    export(records).chars().map(|letter| letter as u8).collect()
}
