//! A session: one table, and what it is encrypted under.

use std::io::Read;

use fhaim_domain::{ReadOptions, Table, infer_schema, read_csv};
use fhaim_dp::generator;
use fhaim_he::PublicKey;
use fhaim_protocol::holder::{Holder, Noise};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::{Object, UploadPlan};
use fhaim_synth::Mechanisms;
use serde::Serialize;

use crate::Error;
use crate::plan::{Composed, Planned, mechanisms, upload_plan};
use crate::request::{ReadRequest, Request};
use crate::table::{Checked, Comparison, Drafted, ReadTable};

/// Longest public key that is taken.
const MAX_KEY_BYTES: u64 = 64 << 20;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// JSON.
    Json(String),
    /// An encrypted object.
    Bytes(Vec<u8>),
}

/// One table, and what it is encrypted under.
#[derive(Debug, Default)]
pub struct Session {
    table: Option<Table>,
    prepared: Option<Prepared>,
}

/// What a table is encrypted under.
#[derive(Debug)]
struct Prepared {
    key: PublicKey,
    plan: UploadPlan,
    record_bound: u64,
}

impl Prepared {
    fn holder<'a>(&'a self, table: &'a Table) -> Result<Holder<'a>, Error> {
        let Self {
            key,
            plan,
            record_bound,
        } = self;
        Ok(Holder::new(table, *record_bound, Noise::Fresh, key, *plan)?)
    }
}

impl Session {
    /// Answers a request; `input` has the bytes that belong to it.
    ///
    /// # Errors
    /// What is wrong with the request, the bytes, or what they hold.
    pub fn answer(&mut self, request: &[u8], input: impl Read) -> Result<Answer, Error> {
        match serde_json::from_slice(request)? {
            Request::Mechanisms => json(&mechanisms()),
            Request::Draft(draft) => json(&Drafted::from(infer_schema(input, &draft.options())?)),
            Request::Check { schema } => json(&Checked::of(&schema)),
            Request::Read(request) => self.read(request, input),
            Request::Plan { terms, records } => json(&Planned::of(&terms, records)?),
            Request::Compose { costs, delta } => json(&Composed::of(&costs, delta)?),
            Request::Prepare { terms } => self.prepare(&terms, input),
            Request::Encrypt { object } => self.encrypt(object),
            Request::Compare { file } => self.compare(&file, input),
        }
    }

    fn read(&mut self, request: ReadRequest, input: impl Read) -> Result<Answer, Error> {
        (self.table, self.prepared) = (None, None);
        let options = request.options();
        let reading = read_csv(request.schema, input, &options)?;
        let answer = json(&ReadTable::of(&reading));
        self.table = Some(reading.table);
        answer
    }

    fn prepare(&mut self, terms: &Terms, input: impl Read) -> Result<Answer, Error> {
        let table = table(self.table.as_ref())?;
        if table.schema() != &terms.schema {
            return Err(Error::Order("the table was read with another schema"));
        }
        let mut bytes = Vec::new();
        input.take(MAX_KEY_BYTES).read_to_end(&mut bytes)?;
        let plan = terms.clone().complete(&Mechanisms)?.plan()?;
        let key = PublicKey::from_bytes(&plan.parameters()?, &bytes);
        let key = key.map_err(fhaim_protocol::Error::from)?;
        let prepared = Prepared {
            key,
            plan: upload_plan(&plan, table.records())?,
            record_bound: terms.record_bound,
        };
        // Refused here, before anything is encrypted.
        prepared.holder(table)?;
        let objects = prepared.plan.object_count();
        self.prepared = Some(prepared);
        json(&objects)
    }

    fn encrypt(&self, object: Object) -> Result<Answer, Error> {
        let table = table(self.table.as_ref())?;
        let prepared = self.prepared.as_ref();
        let prepared = prepared.ok_or(Error::Order("there is no key to encrypt under"))?;
        let holder = prepared.holder(table)?;
        let rng = generator().map_err(|_| Error::Order("the browser gives no randomness"));
        Ok(Answer::Bytes(holder.encode(object, &mut rng?)?))
    }

    fn compare(&self, file: &str, input: impl Read) -> Result<Answer, Error> {
        let real = table(self.table.as_ref())?;
        let options = ReadOptions::new(file);
        let synthetic = read_csv(real.shared_schema(), input, &options)?.table;
        let comparison = Comparison::of(real, &synthetic);
        json(&comparison.map_err(|_| Error::Order("a pair of columns has too many cells"))?)
    }
}

fn table(table: Option<&Table>) -> Result<&Table, Error> {
    table.ok_or(Error::Order("there is no table: read one first"))
}

fn json(answer: &impl Serialize) -> Result<Answer, Error> {
    Ok(Answer::Json(serde_json::to_string(answer)?))
}
