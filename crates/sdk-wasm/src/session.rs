//! A session: one table, and the keys that it is encrypted under.

use std::io::Read;
use std::sync::Arc;

use fhaim_domain::{RawColumn, ReadOptions, Schema, Table, TableReading, read_csv};
use fhaim_dp::generator;
use fhaim_eval::{Fact, Report, evaluate, html_page};
use fhaim_he::{DEGREE, ParameterSet, Parameters, PublicKey, UploadKey};
use fhaim_intake::{TextCounts, count_texts, infer_schema};
use fhaim_protocol::counts::pair_counts::PairCounts;
use fhaim_protocol::encryption::{Encryptor, key_from_text, key_to_text};
use fhaim_protocol::holder::HolderNoise;
use fhaim_protocol::part::{Content, PartHolder, PartPlan};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use fhaim_synth::Mechanisms;
use serde::Serialize;

use crate::Error;
use crate::plan::{Composed, Part, Planned, mechanisms, named, part_plan};
use crate::request::{MAX_REHEARSED, ReadRequest, Request, WipedText};
use crate::schema::{Checked, Drafted, accepted};
use crate::table::ReadTable;
use crate::text::{Found, opened};

/// Maximum size of a public key, in bytes.
const MAX_KEY_BYTES: u64 = 64 << 20;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// JSON.
    Json(String),
    /// An encrypted object.
    Bytes(Vec<u8>),
}

/// One table, and the keys that it is encrypted under.
#[derive(Debug, Default)]
pub struct TableSession {
    table: Option<Table>,
    /// The table's original values, if a report needs them.
    values: Vec<RawColumn>,
    /// The texts of its columns, if a report needs them.
    texts: Vec<TextCounts>,
    prepared: Option<Prepared>,
    /// An upload key that is never used for data, with the number of its parameter set.
    rehearsed: Option<(u8, UploadKey)>,
}

/// The keys and the plan for a table's encryption.
#[derive(Debug)]
struct Prepared {
    /// The dataset's public key, with which the upload key's switching keys are made.
    public: PublicKey,
    /// The upload key.
    key: UploadKey,
    plan: PartPlan,
    record_bound: u64,
    /// The table's counts, if counts are uploaded.
    pair_counts: Option<PairCounts>,
}

impl Prepared {
    fn holder<'a>(&'a self, table: &'a Table) -> Result<PartHolder<'a>, Error> {
        let content = match &self.pair_counts {
            Some(pair_counts) => Content::Counts(pair_counts),
            None => Content::Records(table),
        };
        let (bound, plan) = (self.record_bound, &self.plan);
        let encryptor = Encryptor::sole(&self.public, &self.key);
        let holder = PartHolder::new(&content, bound, HolderNoise::Fresh, encryptor, plan);
        Ok(holder?)
    }
}

impl TableSession {
    /// Answers a request. `input` has the bytes that belong to it.
    ///
    /// # Errors
    /// An invalid request, an unreadable stream, or invalid content.
    pub fn answer(&mut self, request: &[u8], input: impl Read) -> Result<Reply, Error> {
        match serde_json::from_slice(request)? {
            Request::Mechanisms => json(&mechanisms()),
            Request::Dialect { format } => json(&Found::read(input, &format)?),
            Request::Draft(request) => {
                let table = opened(input, &request.format)?;
                let draft = infer_schema(table.text, &request.options(table.dialect))?;
                json(&Drafted::from(draft))
            }
            Request::Accept { schema, rules } => json(&accepted(&schema, &rules)?),
            Request::Check { schema } => json(&Checked::of(&schema)),
            Request::Read(request) => self.read(*request, input),
            Request::Name { terms } => json(&named(*terms)?),
            Request::Part { terms, part } => json(&Part::of(&terms, part)?),
            Request::Plan { terms, records } => json(&Planned::of(&terms, records)?),
            Request::Compose { costs, delta } => json(&Composed::of(&costs, delta)?),
            Request::UploadKey { terms } => upload_key(*terms),
            Request::Prepare { terms, upload_key } => self.prepare(&terms, &upload_key, input),
            Request::Encrypt { object } => self.encrypt(object),
            Request::Rehearse {
                parameter_set,
                objects,
            } => self.rehearse(parameter_set, objects),
            Request::Report { file, facts } => self.report(&file, facts, input),
        }
    }

    fn read(&mut self, request: ReadRequest, input: impl Read) -> Result<Reply, Error> {
        *self = Self::default();
        let table = opened(input, &request.format)?;
        let options = request.options(table.dialect);
        let reading = match options.keep_values {
            false => read_csv(request.schema, table.text, &options)?,
            true => {
                let (reading, texts) = with_texts(request.schema, table.text, &options)?;
                self.texts = texts;
                reading
            }
        };
        let answer = json(&ReadTable::of(&reading));
        (self.table, self.values) = (Some(reading.table), reading.values);
        answer
    }

    fn prepare(
        &mut self,
        terms: &Terms,
        key: &WipedText,
        input: impl Read,
    ) -> Result<Reply, Error> {
        let table = table(self.table.as_ref())?;
        if *table.schema() != terms.schema {
            return Err(Error::Order("the table was read with another schema"));
        }
        let mut bytes = Vec::new();
        input.take(MAX_KEY_BYTES).read_to_end(&mut bytes)?;
        let terms = terms.clone().complete(&Mechanisms)?;
        let params = terms.plan()?.parameters()?;
        let public = PublicKey::from_bytes(&params, &bytes);
        let tables = terms.count_tables()?;
        let pair_counts =
            tables.map(|tables| PairCounts::of_table(tables, terms.record_bound, table));
        let prepared = Prepared {
            public: public.map_err(fhaim_protocol::Error::from)?,
            key: key_from_text(&params, key.text())?,
            plan: part_plan(&terms, table.records())?,
            record_bound: terms.record_bound,
            pair_counts: pair_counts.transpose()?,
        };
        // Reject errors here, before anything is encrypted.
        prepared.holder(table)?;
        let objects = prepared.plan.object_count();
        self.prepared = Some(prepared);
        json(&objects)
    }

    fn encrypt(&self, object: Object) -> Result<Reply, Error> {
        let table = table(self.table.as_ref())?;
        let prepared = self.prepared.as_ref();
        let prepared = prepared.ok_or(Error::Order("there is no key to encrypt under"))?;
        let holder = prepared.holder(table)?;
        let rng = generator().map_err(|_| Error::Order("the browser provides no randomness"));
        Ok(Reply::Bytes(holder.encode(object, &mut rng?)?))
    }

    fn rehearse(&mut self, parameter_set: u8, objects: usize) -> Result<Reply, Error> {
        let failed = |error| Error::from(fhaim_protocol::Error::from(error));
        let mut rng =
            generator().map_err(|_| Error::Order("the browser provides no randomness"))?;
        let key = match &mut self.rehearsed {
            Some((set, key)) if *set == parameter_set => key,
            rehearsed => {
                let set = ParameterSet::by_id(parameter_set);
                let set = set.ok_or(Error::Order("unknown parameter set"))?;
                let params = Parameters::shared(set).map_err(failed)?;
                let key = UploadKey::random(&params, &mut rng).map_err(failed)?;
                &mut rehearsed.insert((parameter_set, key)).1
            }
        };
        let mut encrypted = 0;
        while encrypted < objects.min(MAX_REHEARSED) {
            let sent = key.encrypt(&[0; DEGREE], &mut rng).map_err(failed)?;
            encrypted += sent.len();
        }
        json(&encrypted)
    }

    fn report(
        &self,
        file: &str,
        facts: Vec<(String, String)>,
        input: impl Read,
    ) -> Result<Reply, Error> {
        let real = table(self.table.as_ref())?;
        let options = ReadOptions {
            keep_values: !self.values.is_empty(),
            ..ReadOptions::new(file)
        };
        let (synthetic, texts) = with_texts(real.shared_schema(), input, &options)?;
        let rng = generator().map_err(|_| Error::Order("the browser provides no randomness"));
        let mut report = evaluate(real, &synthetic.table, None, &mut rng?)?;
        if options.keep_values {
            report.add_values(&self.values, &synthetic.values);
            report.add_texts(&self.texts, &texts);
        }
        let fact = |(name, value)| Fact { name, value };
        let facts: Vec<Fact> = facts.into_iter().map(fact).collect();
        let page = html_page(&report, &facts);
        json(&Reported { report, page })
    }
}

/// Reads a table, and counts the texts of its columns before the schema reads them.
fn with_texts(
    schema: impl Into<Arc<Schema>>,
    mut input: impl Read,
    options: &ReadOptions,
) -> Result<(TableReading, Vec<TextCounts>), Error> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let reading = read_csv(schema, &bytes[..], options)?;
    let (dialect, missing) = (&options.dialect, &options.missing);
    let texts = count_texts(&bytes[..], &options.file, dialect, missing, &[])?;
    Ok((reading, texts))
}

/// Draws an upload key, as text.
fn upload_key(terms: Terms) -> Result<Reply, Error> {
    let params = terms.complete(&Mechanisms)?.plan()?.parameters()?;
    let mut rng = generator().map_err(|_| Error::Order("the browser provides no randomness"))?;
    let key = UploadKey::random(&params, &mut rng).map_err(fhaim_protocol::Error::from)?;
    json(&*key_to_text(&key))
}

/// A report, as data and as a separate page.
#[derive(Debug, Serialize)]
struct Reported {
    report: Report,
    page: String,
}

fn table(table: Option<&Table>) -> Result<&Table, Error> {
    table.ok_or(Error::Order("there is no table: read one first"))
}

fn json(answer: &impl Serialize) -> Result<Reply, Error> {
    Ok(Reply::Json(serde_json::to_string(answer)?))
}
