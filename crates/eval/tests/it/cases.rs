//! Tables with a constructed error each: what an assessment must find.
//!
//! `write_cases` writes all of them as files, for a comparison with other programs.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{
    Dialect, OutOfRange, ReadOptions, Schema, TableReading, date_from_days, read_csv,
};
use fhaim_eval::{Report, evaluate};
use fhaim_intake::{TextCounts, count_texts};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

/// Schema of the tables.
pub const SCHEMA: &str = r#"{"name": "stays", "target": "died", "columns": [
    {"name": "ward", "kind": "categorical",
     "categories": ["medicine", "surgery", "obstetrics", "cardiology", "neurology"]},
    {"name": "died", "kind": "categorical", "categories": ["no", "yes"]},
    {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 109, "bins": 11, "digits": 10},
    {"name": "charge", "kind": "number", "integer": true, "min": 0, "max": 10000000, "bins": 100, "digits": 50},
    {"name": "dose", "kind": "number", "decimals": 2, "min": 0, "max": 999.99, "bins": 50, "digits": 20,
     "nullable": true},
    {"name": "admitted", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01", "max": "2024-12-31", "bins": 12},
    {"name": "discharged", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01", "max": "2024-12-31", "bins": 12},
    {"name": "emergency", "kind": "categorical", "categories": ["no", "yes"]},
    {"name": "gene", "kind": "categorical", "categories": ["a", "b"]},
    {"name": "carrier", "kind": "categorical", "categories": ["no", "yes"]},
    {"name": "reacts", "kind": "categorical", "categories": ["no", "yes"]}]}"#;

const HEADER: &str =
    "ward,died,age,charge,dose,admitted,discharged,emergency,gene,carrier,reacts\n";

/// Mortality by ward. Obstetrics has the lowest.
const MORTALITY: [f64; 5] = [0.08, 0.04, 0.002, 0.12, 0.06];
const WARDS: [&str; 5] = [
    "medicine",
    "surgery",
    "obstetrics",
    "cardiology",
    "neurology",
];
const OBSTETRICS: usize = 2;

/// A stay in a hospital.
#[derive(Clone, Debug)]
pub struct Stay {
    ward: usize,
    died: bool,
    age: u32,
    charge: f64,
    dose: Option<f64>,
    admitted: i64,
    discharged: i64,
    emergency: bool,
    gene: bool,
    carrier: bool,
    reacts: bool,
}

/// An error of a synthetic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// No error: another sample of the same population.
    SecondDraw,
    /// The ages are shuffled.
    Shuffled,
    /// The mortality of obstetrics is 3.7% instead of 0.2%.
    Rate,
    /// Whether a patient reacts does not depend on gene and carrier.
    Xor,
    /// 30 records are copies of real ones.
    Copies,
    /// No dose is 0, and 8% of the real ones are.
    Spike,
    /// Charges are no multiples of 500.
    Step,
    /// 2% of the patients are discharged before they are admitted.
    Order,
    /// Charges are a thousand times as large.
    Scale,
    /// The upper 1% of the charges are cut.
    Tail,
}

impl Case {
    pub const ALL: [Self; 10] = [
        Self::SecondDraw,
        Self::Shuffled,
        Self::Rate,
        Self::Xor,
        Self::Copies,
        Self::Spike,
        Self::Step,
        Self::Order,
        Self::Scale,
        Self::Tail,
    ];

    /// Name of the case's file.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns synthetic records with the error. `size` is its part, from 0 to 1.
    pub fn synthetic(self, real: &[Stay], size: f64, seed: u64) -> Vec<Stay> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed + 1_000_000);
        let mut stays = stays(real.len(), seed + 500_000);
        let mortality = MORTALITY[OBSTETRICS] + size * 0.035;
        let limit = upper(real, 0.01 * size);
        if self == Self::Shuffled {
            shuffle(&mut stays, size, &mut rng);
        }
        for stay in &mut stays {
            let chosen = rng.random_bool(size);
            match self {
                Self::Rate if stay.ward == OBSTETRICS => stay.died = rng.random_bool(mortality),
                Self::Xor if chosen => stay.reacts = rng.random_bool(0.5),
                Self::Spike if chosen && stay.dose == Some(0.0) => stay.dose = Some(dose(&mut rng)),
                Self::Step if chosen => stay.charge += f64::from(rng.random_range(0..500)),
                Self::Order if rng.random_bool(0.02 * size) => {
                    stay.discharged = stay.admitted - rng.random_range(1..20);
                }
                Self::Scale => stay.charge *= 1000f64.powf(size),
                Self::Tail => stay.charge = stay.charge.min(limit),
                _ => {}
            }
        }
        if self == Self::Copies {
            let copies = (30.0 * size).round() as usize;
            stays[..copies].clone_from_slice(&real[..copies]);
        }
        stays
    }
}

fn shuffle(stays: &mut [Stay], size: f64, rng: &mut ChaCha8Rng) {
    let chosen: Vec<usize> = (0..stays.len()).filter(|_| rng.random_bool(size)).collect();
    let mut ages: Vec<u32> = chosen.iter().map(|&row| stays[row].age).collect();
    ages.shuffle(rng);
    chosen
        .into_iter()
        .zip(ages)
        .for_each(|(row, age)| stays[row].age = age);
}

/// Returns the charge that a share of the records exceed.
fn upper(stays: &[Stay], share: f64) -> f64 {
    let mut charges: Vec<f64> = stays.iter().map(|stay| stay.charge).collect();
    charges.sort_by(f64::total_cmp);
    charges[stays.len() - 1 - (share * stays.len() as f64) as usize]
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}

fn dose(rng: &mut ChaCha8Rng) -> f64 {
    ((3.0 + 0.6 * normal(rng)).exp() * 100.0)
        .round()
        .min(99_999.0)
        / 100.0
}

/// Returns a sample of the population.
pub fn stays(records: usize, seed: u64) -> Vec<Stay> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..records).map(|_| stay(&mut rng)).collect()
}

fn stay(rng: &mut ChaCha8Rng) -> Stay {
    let ward = [0, 0, 1, 1, 2, 2, 3, 4][rng.random_range(0..8)];
    let age = match ward {
        OBSTETRICS => 30.0 + 5.0 * normal(rng),
        ward => 50.0 + 5.0 * ward as f64 + 15.0 * normal(rng),
    };
    let age = age.clamp(0.0, 100.0) as u32;
    let emergency = rng.random_bool(if age > 60 { 0.5 } else { 0.2 });
    let charge = (8.5 + 0.01 * f64::from(age) + 0.7 * normal(rng)).exp();
    let dose = match rng.random_range(0..100) {
        0..5 => None,
        5..13 => Some(0.0),
        _ => Some(dose(rng)),
    };
    let admitted = 18_262 + rng.random_range(30..1_700);
    let (gene, carrier) = (rng.random_bool(0.5), rng.random_bool(0.5));
    Stay {
        ward,
        died: rng.random_bool(MORTALITY[ward]),
        age,
        charge: (charge / 500.0).round() * 500.0,
        dose,
        admitted,
        discharged: admitted + rng.random_range(0..30),
        emergency,
        gene,
        carrier,
        reacts: (gene != carrier) != rng.random_bool(0.05),
    }
}

/// Writes records as CSV.
pub fn csv(stays: &[Stay]) -> String {
    let day = |days: i64| {
        let (year, month, day) = date_from_days(days).unwrap();
        format!("{year:04}-{month:02}-{day:02}")
    };
    let word = |is: bool| if is { "yes" } else { "no" };
    let mut text = HEADER.to_owned();
    for stay in stays {
        let dose = stay.dose.map_or_else(String::new, |dose| format!("{dose}"));
        text.push_str(&format!(
            "{},{},{},{},{dose},{},{},{},{},{},{}\n",
            WARDS[stay.ward],
            word(stay.died),
            stay.age,
            stay.charge.round(),
            day(stay.admitted),
            day(stay.discharged),
            word(stay.emergency),
            if stay.gene { "a" } else { "b" },
            word(stay.carrier),
            word(stay.reacts),
        ));
    }
    text
}

/// Reads a table with its values.
pub fn read(schema: &str, text: &str) -> TableReading {
    let mut options = ReadOptions::new("t.csv");
    options.keep_values = true;
    options.out_of_range = OutOfRange::Clamp;
    let schema = Schema::from_json("s.json", schema.as_bytes()).unwrap();
    read_csv(schema, text.as_bytes(), &options).unwrap()
}

/// Counts the texts of a table.
pub fn texts(text: &str) -> Vec<TextCounts> {
    let missing = [String::new()];
    count_texts(text.as_bytes(), "t.csv", &Dialect::default(), &missing, &[]).unwrap()
}

/// Compares two tables completely.
pub fn report(schema: &str, real: &str, synthetic: &str) -> Report {
    let (one, two) = (read(schema, real), read(schema, synthetic));
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut report = evaluate(&one.table, &two.table, None, &mut rng).unwrap();
    report.add_values(&one.values, &two.values);
    report.add_texts(&texts(real), &texts(synthetic));
    report
}

#[test]
#[ignore = "needs FHAIM_CASES_DIR"]
fn write_cases() {
    let folder = std::path::PathBuf::from(std::env::var_os("FHAIM_CASES_DIR").unwrap());
    let real = stays(3_000, 1);
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("schema.json", SCHEMA);
    write("real.csv", &csv(&real));
    for case in Case::ALL {
        let name = if case == Case::SecondDraw {
            "second".to_owned()
        } else {
            case.name()
        };
        write(&format!("{name}.csv"), &csv(&case.synthetic(&real, 1.0, 1)));
    }
}
