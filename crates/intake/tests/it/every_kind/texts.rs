//! Random columns of categories, codes, identifiers and sentences.

use std::collections::HashSet;

use fhaim_domain::form::KindForm;
use rand::{Rng, seq::SliceRandom};

use super::{Generated, Generator, MARKERS};

const WORDS: [&str; 16] = [
    "Alpha",
    "beta",
    "Gamma ray",
    "delta-4",
    "Épsilon",
    "ZETA",
    "eta, theta",
    "iota",
    "kappa \"k\"",
    "lambda",
    "mu",
    "Nu",
    "x i",
    "omicron",
    "Pi",
    "rho/sigma",
];

/// The label of a value in the column that follows from it.
pub(super) fn label(value: &str) -> String {
    match value.chars().any(char::is_alphanumeric) && value != "NA" && value != "n/a" {
        true => format!("the {} one", value.to_lowercase()),
        false => value.to_owned(),
    }
}

/// The letters and digits of a text as classes.
fn shape(text: &str) -> String {
    let class = |letter: char| match letter {
        '0'..='9' => '9',
        'a'..='z' => 'a',
        'A'..='Z' => 'A',
        other => other,
    };
    text.chars().map(class).collect()
}

impl Generator {
    pub(super) fn categories(&mut self, kind: KindForm) -> Generated {
        let count = self.rng.random_range(2..=8);
        let mut words = WORDS.to_vec();
        words.shuffle(&mut self.rng);
        words.truncate(count);
        let mut cells: Vec<String> = (0..self.records)
            .map(|_| self.pick(&words).to_owned())
            .collect();
        // A column follows from another without exception.
        if kind == KindForm::Categorical {
            self.disturb(&mut cells);
        }
        self.listed(
            kind,
            None,
            cells,
            words.into_iter().map(str::to_owned).collect(),
        )
    }

    pub(super) fn codes(&mut self) -> Generated {
        let count = self.rng.random_range(6..=10);
        let letter = self.pick(&["E", "I1", "J"]);
        let mut codes: HashSet<String> = HashSet::new();
        while codes.len() < count {
            codes.insert(format!(
                "{letter}{:02}.{}",
                self.rng.random_range(0..3),
                self.rng.random_range(0..9)
            ));
        }
        let mut codes: Vec<String> = codes.into_iter().collect();
        codes.sort();
        let mut cells: Vec<String> = (0..self.records)
            .map(|_| codes[self.rng.random_range(0..codes.len())].clone())
            .collect();
        self.disturb(&mut cells);
        self.listed(KindForm::Code, Some(KindForm::Code), cells, codes)
    }

    fn listed(
        &mut self,
        kind: KindForm,
        chosen: Option<KindForm>,
        cells: Vec<String>,
        values: Vec<String>,
    ) -> Generated {
        // In a column of texts, NA may be a value, and only the holder knows.
        let markers = MARKERS.iter().map(|&marker| marker.to_owned());
        let values: HashSet<String> = values.into_iter().chain(markers).collect();
        Generated {
            kind,
            chosen,
            cells,
            value: Box::new(move |text| values.contains(text).then_some(0.0)),
            limit: |_| None,
        }
    }

    pub(super) fn identifiers(&mut self) -> Generated {
        let form = self.rng.random_range(0..4);
        let mut seen = HashSet::new();
        while seen.len() < self.records {
            let number: u32 = self.rng.random_range(10_000_000..100_000_000);
            seen.insert(match form {
                0 => format!("P-{number}"),
                1 => format!("{number}"),
                2 => format!("{:08x}-{:04x}", self.rng.random::<u32>(), number % 65_536),
                _ => format!("AB{}/{}", number % 900_000 + 100_000, number % 9),
            });
        }
        let mut cells: Vec<String> = seen.into_iter().collect();
        cells.sort();
        let shapes: HashSet<String> = cells.iter().map(|cell| shape(cell)).collect();
        let is_hexadecimal = form == 2;
        let value = move |text: &str| {
            let hexadecimal =
                text.len() == 13 && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
            let fits = if is_hexadecimal {
                hexadecimal
            } else {
                shapes.contains(&shape(text))
            };
            fits.then_some(0.0)
        };
        Generated {
            kind: KindForm::Identifier,
            chosen: None,
            cells,
            value: Box::new(value),
            limit: |_| None,
        }
    }

    pub(super) fn sentences(&mut self) -> Generated {
        let words = [
            "calm", "river", "stone", "cloud", "amber", "field", "quiet", "lamp", "north", "paper",
        ];
        let sentence = |generator: &mut Self| {
            let count = generator.rng.random_range(4..9);
            (0..count)
                .map(|_| generator.pick(&words))
                .collect::<Vec<&str>>()
                .join(" ")
        };
        let mut cells: Vec<String> = (0..self.records).map(|_| sentence(self)).collect();
        self.disturb(&mut cells);
        Generated {
            kind: KindForm::LeftOut,
            chosen: None,
            cells,
            value: Box::new(|_| None),
            limit: |_| None,
        }
    }
}
