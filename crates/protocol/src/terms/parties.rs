//! The holders of some terms, and the data that each of them uploads.

use super::Terms;
use crate::Error;
use crate::counts::CountTables;
use crate::roster::Member;
use fhaim_release::Holders;

impl Terms {
    /// Returns the holders of the table, and on how many holders' noise its prices rely.
    ///
    /// # Errors
    /// A roster that does not fit the schema: see [`crate::roster::Roster::check`].
    pub fn holders(&self) -> Result<Holders, Error> {
        match &self.roster {
            None => Ok(Holders::one()),
            Some(roster) => roster.check(&self.schema, self.record_bound),
        }
    }

    /// Returns the tables of counts that each holder uploads, if holders upload counts.
    ///
    /// # Errors
    /// More counts than a contribution can hold; holders of columns, who cannot count pairs by
    /// themselves.
    pub fn count_tables(&self) -> Result<Option<CountTables>, Error> {
        if self.contribution.is_records() {
            return Ok(None);
        }
        if self.holders()?.owners().is_some() {
            return Err(Error::Terms(
                "contribution: holders of columns cannot count pairs by themselves: use records"
                    .to_owned(),
            ));
        }
        CountTables::new(self.schema.domain()).map(Some)
    }

    pub(super) fn members(&self) -> Vec<Member> {
        let roster = self.roster.as_ref();
        roster.map_or_else(Vec::new, |roster| roster.holders.clone())
    }
}
