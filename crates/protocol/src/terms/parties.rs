//! Who holds the table of some terms, and what each uploads.

use super::Terms;
use crate::Error;
use crate::counts::CountTables;
use crate::roster::Member;
use fhaim_release::Holders;

impl Terms {
    /// Who holds the table, and on whose noise its price relies.
    ///
    /// # Errors
    /// A roster that is none of the schema's: see [`crate::roster::Roster::check`].
    pub fn holders(&self) -> Result<Holders, Error> {
        match &self.roster {
            None => Ok(Holders::one()),
            Some(roster) => roster.check(&self.schema, self.record_bound),
        }
    }

    /// The tables of counts that each holder uploads, where it uploads counts.
    ///
    /// # Errors
    /// More counts than a contribution holds; holders of columns, who cannot count by themselves.
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
