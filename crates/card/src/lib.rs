#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! [`CardFacts`] are the public facts about a synthetic table, and a [`Card`] renders them: [`Card::html`] for people,
//! [`Card::json`] for programs, and [`Card::dictionary`] for a statistician. The crate uses no files, threads or clock,
//! so that it also builds for the browser.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod answers;
mod columns;
mod croissant;
mod dictionary;
mod error;
mod facts;
mod html;
mod noise;
mod numbers;
#[cfg(test)]
mod tests;
mod trust;

pub use columns::{CardColumn, CardValues};
pub use error::Error;
pub use facts::{
    CardFacts, CardHolders, CardSetting, CardTable, CardTerms, RecordsSpending, SpendingSource,
};
pub use noise::AttributeNoise;

/// A data card: what anyone may know about a synthetic table and how it was made.
#[derive(Clone, Debug)]
pub struct Card {
    facts: CardFacts,
    columns: Vec<CardColumn>,
}

impl Card {
    /// Makes a card from its facts.
    pub fn new(facts: CardFacts) -> Self {
        let columns = columns::describe(&facts.terms.schema, facts.noise.as_ref());
        Self { facts, columns }
    }

    /// The facts that the card was made from.
    pub fn facts(&self) -> &CardFacts {
        &self.facts
    }

    /// The columns of the schema, in its order.
    pub fn columns(&self) -> &[CardColumn] {
        &self.columns
    }
}
