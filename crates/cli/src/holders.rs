//! `--holders`: simulates several holders in one process, each with a part of the table and its own keys and noise.

use crate::division::{HolderTable, contribution, shares};
use fhaim_domain::{Field, Table};
use fhaim_dp::{Ladder, LadderPlan};
use fhaim_he::{EvaluationKeys, Layout, PublicKey, UploadKey};
use fhaim_protocol::{
    computation::Computation,
    counts::{
        CountTables,
        pair_counts::PairCounts,
        upload::{CountsHolder, CountsPlan, CountsUpload},
    },
    crypto::CryptoService,
    encryption::{Encryption, Encryptor},
    holder::{self, Holder, HolderNoise, check_records},
    joint::{SwitchKeys, join_uploads},
    request::DatasetId,
    roster::{ContributionKind, HolderSigningKey, Member, Partition, Roster},
    terms::{Plan, Terms},
    upload::UploadPlan,
};
use fhaim_release::Holders;
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256};
use std::{ops::Range, sync::Arc};

use crate::{
    error::Error,
    generate::args::GenerateArguments,
    held::Held,
    randomness::{InsecureTestSeed, Purpose, generator},
    spool::Spool,
};

/// The holders of a run in one process, with their signing keys.
#[derive(Debug)]
pub struct Party {
    keys: Vec<HolderSigningKey>,
}

impl Party {
    /// Adds the holders to a dataset's terms if there are several, with keys drawn from `rng`.
    pub fn join<R: RngCore + CryptoRng>(
        arguments: &GenerateArguments,
        held: &Held,
        mut terms: Terms,
        rng: &mut R,
    ) -> Result<(Self, Terms), Error> {
        let GenerateArguments {
            record_bound,
            mechanism,
            holders: arguments,
            ..
        } = *arguments;
        let arguments = &arguments;
        terms.contribution = contribution(arguments, held.schema().domain(), held.records())?;
        let count = arguments.holders;
        if count == 1 {
            if arguments.honest != 1 {
                let error = "--honest must not be larger than --holders";
                return Err(Error::Usage(error.to_owned()));
            }
            let keys = Vec::new();
            return Ok((Self { keys }, terms));
        }
        if count == 0 || count > fhaim_release::MAX_HOLDERS {
            let most = fhaim_release::MAX_HOLDERS;
            return Err(Error::Usage(format!(
                "--holders must be a number from 1 to {most}"
            )));
        }
        if mechanism.clear_only() {
            let error =
                format!("--mechanism {mechanism} supports only one holder: leave out --holders");
            return Err(Error::Usage(error));
        }
        let keys: Vec<HolderSigningKey> =
            (0..count).map(|_| HolderSigningKey::random(rng)).collect();
        let bounds = bounds(arguments.by, held.records(), count, record_bound)?;
        if arguments.by == HolderTable::Records {
            terms.record_bound = record_bound.unwrap_or(bounds.iter().sum());
        }
        // Nobody encrypts identifiers, derived and left-out columns: they have no attributes.
        let fields = held.schema().fields().iter();
        let fields = fields.filter(|field| !field.attributes().is_empty());
        let names: Vec<&str> = fields.map(Field::name).collect();
        let columns = shares(names.len(), count);
        type Share = Range<usize>;
        let member = |((key, record_bound), (number, columns)): (
            (&HolderSigningKey, u64),
            (usize, Share),
        )| {
            let names = names
                .get(columns)
                .filter(|_| arguments.by == HolderTable::Columns);
            Member {
                account: format!("holder {}", number + 1),
                columns: names
                    .unwrap_or_default()
                    .iter()
                    .map(|&n| n.to_owned())
                    .collect(),
                record_bound,
                key: key.public(),
            }
        };
        let members = keys.iter().zip(bounds).zip(columns.into_iter().enumerate());
        terms.roster = Some(Roster {
            partition: match arguments.by {
                HolderTable::Records => Partition::Records,
                HolderTable::Columns => Partition::Columns,
            },
            honest: arguments.honest,
            holders: members.map(member).collect(),
        });
        terms.holders()?;
        Ok((Self { keys }, terms))
    }

    /// Records the keys with the key service, and has every holder sign the terms and keys.
    pub fn sign(
        &self,
        terms: &Terms,
        crypto: &mut CryptoService,
        keys: [[u8; 32]; 2],
    ) -> Result<(), Error> {
        let terms = serde_json::to_vec(terms).map_err(|_| fhaim_protocol::Error::Refused)?;
        let [public_key, evaluation_keys] = keys;
        let record = crypto.record_mut();
        let terms = Sha256::digest(terms).into();
        let agreement = record.keys_made(terms, public_key, evaluation_keys)?;
        for (member, key) in (0..).zip(&self.keys) {
            record.sign(member, key.sign(&agreement))?;
        }
        Ok(())
    }
}

/// Returns the record bound of each holder.
fn bounds(
    by: HolderTable,
    records: usize,
    count: u32,
    bound: Option<u64>,
) -> Result<Vec<u64>, Error> {
    let shown = |records: usize| -> Result<u64, Error> {
        Ok(Layout::for_records(records)?.max_records() as u64)
    };
    if by == HolderTable::Columns {
        let bound = bound.map_or_else(|| shown(records), Ok)?;
        return Ok(vec![bound; count as usize]);
    }
    if records < count as usize {
        let error = "the table has fewer records than --holders: each holder needs at least one";
        return Err(Error::Usage(error.to_owned()));
    }
    let shares = shares(records, count).into_iter();
    let share = |share: Range<usize>| match bound {
        // This covers the holder's records, because the bound covers the table's.
        Some(bound) => Ok((u128::from(bound) * share.len() as u128 / records as u128) as u64),
        None => shown(share.len()),
    };
    shares.map(share).collect()
}

/// Splits a table into the parts of its holders.
pub fn parts(table: &Table, holders: &Holders) -> Result<Vec<Table>, Error> {
    let Some(owners) = holders.owners() else {
        let shares = shares(table.records(), holders.count()).into_iter();
        let part = |rows: Range<usize>| {
            let rows: Vec<usize> = rows.collect();
            Ok(table.select(&rows).map_err(fhaim_domain::Error::from)?)
        };
        return shares.map(part).collect();
    };
    let part = |holder| {
        let own: Vec<usize> = (0..owners.len()).filter(|&a| owners[a] == holder).collect();
        let fields = table.schema().fields().iter().enumerate();
        // A field's attributes have one owner.
        let fields = fields.filter(|(_, field)| field.attributes().any(|a| own.contains(&a)));
        let fields: Vec<usize> = fields.map(|(number, _)| number).collect();
        let schema = table.schema().part(&fields);
        let schema = schema.map_err(|problem| fhaim_domain::Error::Schema {
            file: format!("holder {}'s part of the schema", holder + 1),
            problem,
        })?;
        let columns = own.iter().map(|&a| table.column(a).to_vec()).collect();
        Ok(Table::new(schema, columns).map_err(fhaim_domain::Error::from)?)
    };
    (0..holders.count()).map(part).collect()
}

/// Draws the noise of several holders.
///
/// With a test seed, each holder uses the seed after that of the previous holder. It gets the same noise as on its own
/// machine with that seed.
pub fn ladders(
    plan: LadderPlan,
    holders: &Holders,
    seed: Option<InsecureTestSeed>,
) -> Result<Vec<Ladder>, Error> {
    let of = |InsecureTestSeed(seed), number| InsecureTestSeed(seed.wrapping_add(number));
    let draw = |number| {
        let seed = seed.map(|seed| of(seed, number));
        let mut rng = generator(seed, Purpose::Noise)?;
        Ok(Ladder::draw(plan, &mut rng))
    };
    (0..u64::from(holders.count())).map(draw).collect()
}

/// The uploads of all holders.
pub struct Uploaded {
    /// Number of ciphertexts in all uploads.
    pub ciphertexts: usize,
    /// Number of bytes in all uploads.
    pub bytes: u64,
    /// The computation service with the uploads.
    pub computation: Computation,
}

/// The holders' data, and the plan of their dataset.
pub struct Holding<'a> {
    /// The dataset.
    pub dataset: DatasetId,
    /// The holders' records, or their counts.
    pub held: &'a Held,
    /// A noise ladder for each holder.
    pub ladders: &'a [Ladder],
    /// The plan that follows from the terms.
    pub plan: &'a Plan,
    /// The key service, which creates the upload keys of several holders.
    pub crypto: &'a CryptoService,
}

/// Encrypts the data of every holder, and joins the uploads. Calls `done` after every object.
pub fn upload<R: RngCore + CryptoRng>(
    holding: &Holding<'_>,
    contribution: ContributionKind,
    public: PublicKey,
    keys: EvaluationKeys,
    rng: &mut R,
    done: &(dyn Fn() + Sync),
) -> Result<Uploaded, Error> {
    match (contribution, holding.held) {
        (ContributionKind::Records, Held::Table(table)) => {
            upload_records(holding, table, public, keys, rng, done)
        }
        (ContributionKind::Records, Held::Counts { .. }) => {
            Err(fhaim_protocol::Error::Object("counts cannot be uploaded as records").into())
        }
        (ContributionKind::Counts, Held::Table(table)) => {
            let tables = CountTables::new(table.domain())?;
            let parts = parts(table, &holding.plan.job.holders)?;
            let holder_counts = (0..).zip(&parts).map(|(holder, part)| {
                PairCounts::of_table(tables.clone(), bound_of(holding.plan, holder), part)
            });
            let holder_counts = holder_counts.collect::<Result<Vec<_>, _>>()?;
            upload_counts(holding, &holder_counts, public, keys, rng, done)
        }
        (ContributionKind::Counts, Held::Counts { holder_counts, .. }) => {
            upload_counts(holding, holder_counts, public, keys, rng, done)
        }
    }
}

fn upload_records<R: RngCore + CryptoRng>(
    holding: &Holding<'_>,
    table: &Table,
    public: PublicKey,
    keys: EvaluationKeys,
    rng: &mut R,
    done: &(dyn Fn() + Sync),
) -> Result<Uploaded, Error> {
    let plan = holding.plan;
    let (domain, holders) = (table.domain(), &plan.job.holders);
    let parts = parts(table, holders)?;
    let upload_keys = upload_keys(holding, &public, rng)?;
    let (mut ciphertexts, mut bytes) = (0, 0);
    let mut uploads = Vec::with_capacity(parts.len());
    let each = parts.iter().zip(holding.ladders).zip(&upload_keys);
    for (number, ((part, ladder), key)) in each.enumerate() {
        let shape = shape(part, plan)?;
        ciphertexts += shape.ciphertext_count();
        bytes += shape.form().bytes(public.params(), shape.polynomials());
        let bound = bound_of(plan, number);
        let encryptor = encryptor(plan, &public, key);
        let holder = Holder::new(part, bound, HolderNoise::Drawn(ladder), encryptor, shape)?;
        uploads.push(holder::encrypt(&holder, rng, done)?);
    }
    let joined = join_uploads(domain, holders, &keys, &uploads)?;
    let computation = Computation::new(holding.dataset, domain.clone(), public, keys, joined);
    Ok(Uploaded {
        ciphertexts,
        bytes,
        computation,
    })
}

/// Returns the upload key of each holder. A sole holder draws its own key; the key service creates those of a roster.
fn upload_keys<R: RngCore + CryptoRng>(
    holding: &Holding<'_>,
    public: &PublicKey,
    rng: &mut R,
) -> Result<Vec<UploadKey>, Error> {
    let params = public.params();
    let holders = 0..holding.plan.job.holders.count() as usize;
    match holding.plan.core.encryption {
        Encryption::OwnKey => Ok(vec![UploadKey::random(params, rng)?]),
        Encryption::RosterKey => holders
            .map(|holder| {
                let seed = holding.crypto.upload_seed(holder);
                Ok(UploadKey::from_seeds(params, vec![seed])?)
            })
            .collect(),
    }
}

/// Returns a holder's encryptor.
fn encryptor<'a>(plan: &Plan, public: &'a PublicKey, key: &'a UploadKey) -> Encryptor<'a> {
    match plan.core.encryption {
        Encryption::OwnKey => Encryptor::sole(public, key),
        Encryption::RosterKey => Encryptor::of_roster(key),
    }
}

fn upload_counts<R: RngCore + CryptoRng>(
    holding: &Holding<'_>,
    holder_counts: &[PairCounts],
    public: PublicKey,
    keys: EvaluationKeys,
    rng: &mut R,
    done: &(dyn Fn() + Sync),
) -> Result<Uploaded, Error> {
    let plan = holding.plan;
    let shape = CountsPlan::new(holding.held.schema().domain(), plan.core.run_ladder)?;
    let shape = shape.under(plan.core.encryption);
    let upload_keys = upload_keys(holding, &public, rng)?;
    let mut sent = Spool::new(public.params(), shape.form())?;
    let each = holder_counts.iter().zip(holding.ladders).zip(&upload_keys);
    for (holder, ((pair_counts, ladder), key)) in each.enumerate() {
        let records = usize::try_from(pair_counts.records()).unwrap_or(usize::MAX);
        check_records(records, bound_of(plan, holder))?;
        let encryptor = encryptor(plan, &public, key);
        let encrypted =
            CountsHolder::new(pair_counts, HolderNoise::Drawn(ladder), encryptor, &shape)?;
        encrypted.encrypt_each(rng, done, |object, payload| {
            sent.put(holder, object, &payload)
        })?;
    }
    let polynomials = holder_counts.len() * shape.polynomials();
    let ciphertexts = polynomials * plan.core.set.plaintext_moduli.len();
    let sent = Arc::new(sent);
    let get = |holder, object| sent.get(holder, object);
    let bytes = shape.form().bytes(public.params(), polynomials);
    let switch_keys = match keys.roster() {
        None => SwitchKeys::own(|object| sent.get(0, object))?,
        Some(roster) => SwitchKeys::of_roster(&keys, roster.shape())?,
    };
    let joined = CountsUpload::join(
        public.params(),
        &shape,
        &plan.job.holders,
        &switch_keys,
        get,
        sent.clone(),
    )?;
    Ok(Uploaded {
        ciphertexts,
        bytes,
        computation: Computation::of_counts(holding.dataset, public, keys, joined)?,
    })
}

/// Returns the maximum number of records in a holder's part.
fn bound_of(plan: &Plan, holder: usize) -> u64 {
    let member = plan.core.members.get(holder);
    member.map_or(plan.job.record_bound, |member| member.record_bound)
}

/// Returns the shape of one holder's upload of records.
fn shape(part: &Table, plan: &Plan) -> Result<UploadPlan, Error> {
    let (domain, records) = (part.domain(), part.records());
    let shape = UploadPlan::for_table(domain, records, plan.core.run_ladder, &plan.core.set)?;
    Ok(shape.under(plan.core.encryption))
}

/// Returns the number of objects in all holders' uploads.
pub fn objects(held: &Held, plan: &Plan, contribution: ContributionKind) -> Result<usize, Error> {
    let holders = &plan.job.holders;
    match (contribution, held) {
        (ContributionKind::Records, Held::Table(table)) => parts(table, holders)?
            .iter()
            .map(|part| Ok(shape(part, plan)?.object_count()))
            .sum(),
        _ => {
            let domain = held.schema().domain();
            let one = CountsPlan::new(domain, plan.core.run_ladder)?.under(plan.core.encryption);
            Ok(one.object_count() * holders.count() as usize)
        }
    }
}

/// Returns the digests of a dataset's keys, which its holders sign.
pub fn key_digests(public: &PublicKey, keys: &EvaluationKeys) -> Result<[[u8; 32]; 2], Error> {
    let public = public.to_bytes()?;
    Ok([
        Sha256::digest(public).into(),
        Sha256::digest(keys.to_bytes()).into(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_complete() {
        for (records, count) in [(10, 3), (7, 7), (1599, 4)] {
            let shares = shares(records, count);
            let sizes: Vec<usize> = shares.iter().map(|share| share.len()).collect();
            assert_eq!(sizes.iter().sum::<usize>(), records);
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn record_bounds_cover_each_share_and_stay_within_the_total() {
        let bounds = |by, bound| bounds(by, 1000, 3, bound).unwrap();
        assert_eq!(bounds(HolderTable::Records, None), [512; 3]);
        let of_bound = bounds(HolderTable::Records, Some(1000));
        assert!(of_bound.iter().sum::<u64>() <= 1000 && of_bound.iter().all(|&b| b >= 333));
        assert_eq!(bounds(HolderTable::Columns, Some(2000)), [2000; 3]);
        assert!(matches!(
            super::bounds(HolderTable::Records, 2, 3, None),
            Err(Error::Usage(..))
        ));
    }
}
