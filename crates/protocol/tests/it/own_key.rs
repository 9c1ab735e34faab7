//! Tests uploads under an upload key: their sizes and seeds, and uploads whose parts do not belong
//! together.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Schema, Table};
use fhaim_dp::{LadderKey, LadderPlan};
use fhaim_he::{
    COMPACT, Layout, ParameterSet, Parameters, PublicKey, STANDARD, SecretKey, UploadKey,
};
use fhaim_protocol::Error;
use fhaim_protocol::computation::{Computation, SealedBatch};
use fhaim_protocol::encryption::{Encryption, Encryptor, Payload, key_from_text, key_to_text};
use fhaim_protocol::holder::{Holder, HolderNoise};
use fhaim_protocol::joint::join_uploads;
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::upload::{Object, ReceivedUpload, UploadPlan};
use fhaim_protocol::window::Window;
use fhaim_release::{Holders, ReleaseRequest, Statistic};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Stored = BTreeMap<Object, Vec<u8>>;

fn table(records: usize) -> Table {
    let json =
        r#"{"name":"t","columns":[{"name":"a","kind":"categorical","categories":["x","y"]}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    let codes = (0..records).map(|record| record as u32 % 2).collect();
    Table::new(Arc::new(schema), vec![codes]).unwrap()
}

struct Setting {
    params: Parameters,
    secret: SecretKey,
    public: PublicKey,
    table: Table,
    plan: UploadPlan,
    rng: ChaCha20Rng,
}

impl Setting {
    fn new(set: ParameterSet, records: usize) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(records as u64);
        let params = Parameters::new(set).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let table = table(records);
        let ladder = LadderPlan::with_levels(100, 2).unwrap();
        let plan = UploadPlan::for_table(table.domain(), records, ladder, &set).unwrap();
        Self {
            public: secret.public_key(&mut rng).unwrap(),
            secret,
            plan,
            params,
            table,
            rng,
        }
    }

    fn own(&mut self) -> UploadKey {
        UploadKey::random(&self.params, &mut self.rng).unwrap()
    }

    fn send(&mut self, own: &UploadKey) -> Stored {
        let encryptor = Encryptor::sole(&self.public, own);
        let holder = Holder::new(
            &self.table,
            10_000,
            HolderNoise::Fresh,
            encryptor,
            self.plan,
        )
        .unwrap();
        let rng = &mut self.rng;
        let objects = self.plan.objects();
        let sent = objects.map(|object| (object, holder.encode(object, rng).unwrap()));
        sent.collect()
    }

    /// Computes a release whose noise uses every vector of the ladder.
    fn compute(&mut self, stored: &Stored) -> Result<SealedBatch, Error> {
        let get = |object| self.plan.decode(&self.params, object, &stored[&object]);
        let upload = ReceivedUpload::from_objects(&self.params, self.plan, get)?;
        let keys = self.secret.evaluation_keys(&mut self.rng)?;
        let domain = self.table.domain();
        let upload = join_uploads(domain, &Holders::one(), &keys, &[upload])?;
        let (dataset, job) = (DatasetId([7; 16]), JobId([1; 16]));
        let public = self.public.clone();
        let computation = Computation::new(dataset, domain.clone(), public, keys, upload);
        let window = Window::new(dataset, job, 0, self.plan.ladder);
        let total = ReleaseRequest {
            number: 0,
            statistic: Statistic::Total,
            variance_units: 0b11_11,
        };
        computation.answer(
            &window,
            &[total],
            &SealingKey::from_bytes(&[6; 32]).unwrap(),
        )
    }
}

#[test]
fn objects_have_the_planned_sizes_and_the_keys_are_first() {
    for set in [COMPACT, STANDARD] {
        let mut setting = Setting::new(set, 100);
        let own = setting.own();
        let sent = setting.send(&own);
        setting.compute(&sent).unwrap();
        assert_eq!(setting.plan.objects().next(), Some(Object::Keys));
        let form = setting.plan.form();
        let bytes: usize = sent.values().map(Vec::len).sum();
        let planned = form.bytes(&setting.params, setting.plan.polynomials());
        assert_eq!(bytes as u64, planned);
        for (object, bytes) in &sent {
            assert_eq!(bytes.len(), form.object_bytes(&setting.params, *object));
        }
        let whole = set.ciphertext_bytes() * set.plaintext_moduli.len();
        let half = form.polynomial_bytes(&set);
        assert!(2 * half < whole + 200, "{half} of {whole}");
    }
}

/// No seed is drawn twice, for two objects or for an object that is encrypted again.
#[test]
fn repeatedly_encrypted_object_has_another_seed() {
    let mut setting = Setting::new(COMPACT, 100);
    let own = setting.own();
    let mut masks = BTreeSet::new();
    for _ in 0..2 {
        for (object, bytes) in setting.send(&own) {
            if object == Object::Keys {
                continue;
            }
            let payload = setting.plan.decode(&setting.params, object, &bytes);
            for one in payload.unwrap().expanded(&setting.params).unwrap() {
                let mut words = Vec::new();
                one.digest_into(|bytes| words.extend_from_slice(bytes));
                let mask = words.split_off(words.len() / 2 + 1);
                assert!(masks.insert(mask), "{object}");
            }
        }
    }
    assert_eq!(masks.len(), 2 * setting.plan.ciphertext_count());
}

/// A kept noise key gives the same noise under other seeds.
#[test]
fn noise_from_a_kept_key_is_encrypted_under_new_seeds() {
    let mut setting = Setting::new(COMPACT, 100);
    let own = setting.own();
    let kept = LadderKey::random([1; 16], &mut setting.rng);
    let encryptor = Encryptor::sole(&setting.public, &own);
    let noise = HolderNoise::Keyed(&kept);
    let holder = Holder::new(&setting.table, 1000, noise, encryptor, setting.plan).unwrap();
    let object = setting.plan.noise_objects().next().unwrap();
    let first = holder.encode(object, &mut setting.rng).unwrap();
    assert_ne!(first, holder.encode(object, &mut setting.rng).unwrap());
}

#[test]
fn mixed_parts_of_two_uploads_are_rejected() {
    let mut setting = Setting::new(COMPACT, 100);
    let (one, other) = (setting.own(), setting.own());
    let (one, other) = (setting.send(&one), setting.send(&other));
    for object in setting.plan.objects() {
        let mut mixed = one.clone();
        mixed.insert(object, other[&object].clone());
        let refused = setting.compute(&mixed).unwrap_err();
        assert!(
            matches!(refused, Error::Object(_) | Error::Encryption(_)),
            "{object}: {refused}"
        );
        assert!(refused.to_string().contains("key"), "{object}: {refused}");
    }
}

#[test]
fn bytes_that_are_not_an_object_of_the_plan_are_rejected() {
    let mut setting = Setting::new(COMPACT, 100);
    let own = setting.own();
    let sent = setting.send(&own);
    let (plan, params) = (setting.plan, setting.params.clone());
    let column = Object::Column {
        column: 0,
        chunk: 0,
    };
    for object in [Object::Keys, column] {
        let bytes = &sent[&object];
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            assert!(matches!(
                plan.decode(&params, object, &bytes[..cut]),
                Err(Error::Object(..))
            ));
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(matches!(
            plan.decode(&params, object, &longer),
            Err(Error::Object(..))
        ));
        for place in (0..bytes.len()).step_by(bytes.len() / 16) {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1;
            assert!(
                matches!(
                    plan.decode(&params, object, &flipped),
                    Err(Error::Encryption(..))
                ),
                "{place}"
            );
        }
    }
    // Keys instead of a column, a column instead of keys, and a ciphertext under the public key.
    assert!(matches!(
        plan.decode(&params, column, &sent[&Object::Keys]),
        Err(Error::Object(..))
    ));
    assert!(matches!(
        plan.decode(&params, Object::Keys, &sent[&column]),
        Err(Error::Object(..))
    ));
    let public = setting.public.encrypt(&[1], &mut setting.rng).unwrap();
    let public = public[0].to_bytes(&params);
    let refused = plan.decode(&params, column, &public).unwrap_err();
    assert!(matches!(refused, Error::Object(_)), "{refused}");
    // A holder of a roster sends ciphertexts of the same form, but no keys.
    let of_roster = plan.under(Encryption::RosterKey);
    assert!(of_roster.decode(&params, column, &sent[&column]).is_ok());
    let keys = of_roster.decode(&params, Object::Keys, &sent[&Object::Keys]);
    assert!(matches!(keys, Err(Error::Object(_))));
}

/// If a holder of a roster could make switching keys, it would make those of the dataset's key.
#[test]
fn holder_of_a_roster_cannot_follow_a_sole_holders_plan() {
    let mut setting = Setting::new(COMPACT, 100);
    let own = setting.own();
    let (sole, of_roster) = (
        Encryptor::sole(&setting.public, &own),
        Encryptor::of_roster(&own),
    );
    let under_roster_key = setting.plan.under(Encryption::RosterKey);
    let holder =
        |encryptor, plan| Holder::new(&setting.table, 1000, HolderNoise::Fresh, encryptor, plan);
    for (encryptor, other) in [(sole, under_roster_key), (of_roster, setting.plan)] {
        let refused = holder(encryptor, other);
        assert!(matches!(refused, Err(Error::Object(_))), "{refused:?}");
    }
    let holder = holder(of_roster, under_roster_key).unwrap();
    let refused = holder.encrypt(Object::Keys, &mut setting.rng);
    assert!(matches!(refused, Err(Error::Object(_))), "{refused:?}");
}

#[test]
fn payload_is_under_the_key_that_encrypted_it() {
    let mut setting = Setting::new(COMPACT, 100);
    let (own, other) = (setting.own(), setting.own());
    let sent = setting.send(&own);
    for (object, bytes) in &sent {
        let payload = setting.plan.decode(&setting.params, *object, bytes);
        let payload: Payload = payload.unwrap();
        assert_eq!(payload.is_under(own.id()), *object != Object::Keys);
        assert!(!payload.is_under(other.id()));
    }
}

#[test]
fn keys_of_another_set_or_layout_are_refused() {
    let mut setting = Setting::new(COMPACT, 100);
    let own = setting.own();
    let sent = setting.send(&own);
    let mut large = Setting::new(STANDARD, 100);
    let other = large.own();
    let keys = &large.send(&other)[&Object::Keys];
    assert!(matches!(
        setting.plan.decode(&setting.params, Object::Keys, keys),
        Err(Error::Object(..))
    ));
    let wider = UploadPlan {
        layout: Layout::for_records(1000).unwrap(),
        ..setting.plan
    };
    let keys = &sent[&Object::Keys];
    assert!(matches!(
        wider.decode(&setting.params, Object::Keys, keys),
        Err(Error::Encryption(..))
    ));
    // A key of one parameter set cannot encrypt for another set.
    let encryptor = Encryptor::sole(&setting.public, &other);
    let holder = Holder::new(
        &setting.table,
        1000,
        HolderNoise::Fresh,
        encryptor,
        setting.plan,
    );
    assert!(matches!(holder, Err(Error::Object(..))));
}

#[test]
fn upload_key_survives_its_text_and_other_text_is_rejected() {
    let mut setting = Setting::new(COMPACT, 100);
    let own = setting.own();
    let text = key_to_text(&own);
    let read = key_from_text(&setting.params, &text).unwrap();
    assert_eq!(read.id(), own.id());
    assert_eq!(read.to_bytes(), own.to_bytes());
    let upper = text.to_uppercase();
    for wrong in ["", &text[1..], &text[2..], &upper, &format!("{}00", *text)] {
        let refused = key_from_text(&setting.params, wrong)
            .unwrap_err()
            .to_string();
        let seed = &text[text.len() - 64..];
        assert!(!refused.contains(&seed[..16]), "it quotes the key");
    }
}
