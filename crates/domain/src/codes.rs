//! Codes with a hierarchy: chapters, and the codes of each.

use std::collections::HashMap;

use crate::{ColumnProblem, MAX_CATEGORIES, MAX_DIGITS, names::is_name};

/// A chapter of a code book and its codes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chapter {
    pub(crate) name: String,
    pub(crate) codes: Vec<String>,
}

/// A code book: the chapter is the coarse attribute, the code within it the fine one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CodeBook {
    chapters: Vec<Chapter>,
    /// Chapter and place of each code.
    places: HashMap<String, (u32, u32)>,
    /// The code for values outside the book, if the schema declares one.
    other: Option<(u32, u32)>,
}

impl CodeBook {
    /// Builds a book from chapters.
    ///
    /// # Errors
    /// A chapter or code with an invalid or repeated name, no chapters or codes or too many of
    /// them, an `other` that is not a code.
    pub(crate) fn new(chapters: Vec<Chapter>, other: Option<&str>) -> Result<Self, ColumnProblem> {
        if !(1..=MAX_CATEGORIES).contains(&chapters.len()) {
            return Err(ColumnProblem::Codes(chapters.len()));
        }
        let (mut places, mut names) = (HashMap::new(), HashMap::new());
        for (chapter, number) in chapters.iter().zip(0u32..) {
            if !(1..=MAX_DIGITS as usize).contains(&chapter.codes.len()) {
                return Err(ColumnProblem::Codes(chapter.codes.len()));
            }
            add(&mut names, &chapter.name, (number, 0))?;
            for (code, place) in chapter.codes.iter().zip(0u32..) {
                add(&mut places, code, (number, place))?;
            }
        }
        let other = match other {
            None => None,
            Some(code) => {
                let place = places.get(code).copied();
                Some(place.ok_or_else(|| ColumnProblem::Other(code.to_owned()))?)
            }
        };
        Ok(Self {
            chapters,
            places,
            other,
        })
    }

    /// Builds a book whose chapters are the first `prefix` characters of its codes.
    ///
    /// # Errors
    /// The same as [`CodeBook::new`].
    pub(crate) fn with_prefix(
        codes: &[String],
        prefix: usize,
        other: Option<&str>,
    ) -> Result<Self, ColumnProblem> {
        let mut chapters: Vec<Chapter> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for code in codes {
            let name: String = code.chars().take(prefix).collect();
            let number = *numbers.entry(name.clone()).or_insert(chapters.len());
            if number == chapters.len() {
                let codes = Vec::new();
                chapters.push(Chapter { name, codes });
            }
            chapters[number].codes.push(code.clone());
        }
        Self::new(chapters, other)
    }

    pub(crate) fn chapters(&self) -> &[Chapter] {
        &self.chapters
    }

    pub(crate) fn place(&self, code: &str) -> Option<(u32, u32)> {
        self.places.get(code).copied()
    }

    pub(crate) fn other(&self) -> Option<(u32, u32)> {
        self.other
    }

    /// Returns the code at a place. A model may give a little mass to places past a chapter's last
    /// code. Such a place stands for another code of the chapter.
    pub(crate) fn code(&self, chapter: u32, place: u32) -> Option<&str> {
        let codes = &self.chapters.get(chapter as usize)?.codes;
        codes
            .get(place as usize % codes.len().max(1))
            .map(String::as_str)
    }
}

fn add(
    places: &mut HashMap<String, (u32, u32)>,
    name: &str,
    place: (u32, u32),
) -> Result<(), ColumnProblem> {
    if !is_name(name) {
        return Err(ColumnProblem::Category(crate::names::cut(name)));
    }
    match places.insert(name.to_owned(), place) {
        None => Ok(()),
        Some(_) => Err(ColumnProblem::RepeatedCategory(name.to_owned())),
    }
}
