//! What a holder sends under a key of its own is half as long, and is refused where its parts do not belong
//! together.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Schema, Table};
use fhaim_dp::{LadderKey, LadderPlan};
use fhaim_he::{HolderKey, Layout, P1, P1_LARGE, ParameterSet, Parameters, PublicKey, SecretKey};
use fhaim_protocol::Error;
use fhaim_protocol::encryption::{Encryption, Encryptor, Payload, key_from_text, key_to_text};
use fhaim_protocol::holder::{Holder, Noise};
use fhaim_protocol::upload::{Object, Upload, UploadPlan};
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
            plan: plan.under(Encryption::HolderKey),
            params,
            table,
            rng,
        }
    }

    fn own(&mut self) -> HolderKey {
        HolderKey::random(&self.params, &mut self.rng).unwrap()
    }

    fn send(&mut self, own: &HolderKey) -> Stored {
        let encryptor = Encryptor::new(&self.public, Some(own));
        let holder = Holder::new(&self.table, 10_000, Noise::Fresh, encryptor, self.plan).unwrap();
        let rng = &mut self.rng;
        let objects = self.plan.objects();
        let sent = objects.map(|object| (object, holder.encode(object, rng).unwrap()));
        sent.collect()
    }

    fn put_together(&self, stored: &Stored) -> Result<Upload, Error> {
        let get = |object| self.plan.decode(&self.params, object, &stored[&object]);
        Upload::from_objects(&self.params, self.plan, get)
    }
}

#[test]
fn objects_are_half_as_long_and_the_keys_come_first() {
    for set in [P1, P1_LARGE] {
        let mut setting = Setting::new(set, 100);
        let own = setting.own();
        let sent = setting.send(&own);
        setting.put_together(&sent).unwrap();
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

/// No seed is drawn twice: not for two objects, nor for one that is encrypted again.
#[test]
fn an_object_that_is_encrypted_again_has_another_seed() {
    let mut setting = Setting::new(P1, 100);
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

/// What a holder kept of its noise gives the same noise under other seeds.
#[test]
fn noise_from_a_kept_key_is_encrypted_under_new_seeds() {
    let mut setting = Setting::new(P1, 100);
    let own = setting.own();
    let kept = LadderKey::random([1; 16], &mut setting.rng);
    let encryptor = Encryptor::new(&setting.public, Some(&own));
    let noise = Noise::Keyed(&kept);
    let holder = Holder::new(&setting.table, 1000, noise, encryptor, setting.plan).unwrap();
    let object = setting.plan.noise_objects().next().unwrap();
    let first = holder.encode(object, &mut setting.rng).unwrap();
    assert_ne!(first, holder.encode(object, &mut setting.rng).unwrap());
}

#[test]
fn parts_of_two_uploads_are_refused() {
    let mut setting = Setting::new(P1, 100);
    let (one, other) = (setting.own(), setting.own());
    let (one, other) = (setting.send(&one), setting.send(&other));
    for object in setting.plan.objects() {
        let mut mixed = one.clone();
        mixed.insert(object, other[&object].clone());
        let refused = setting.put_together(&mixed).unwrap_err();
        assert!(
            matches!(refused, Error::Object(_) | Error::Encryption(_)),
            "{object}: {refused}"
        );
        assert!(refused.to_string().contains("key"), "{object}: {refused}");
    }
}

#[test]
fn what_is_no_object_of_the_plan_is_refused() {
    let mut setting = Setting::new(P1, 100);
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
            assert!(plan.decode(&params, object, &bytes[..cut]).is_err());
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(plan.decode(&params, object, &longer).is_err());
        for place in (0..bytes.len()).step_by(bytes.len() / 16) {
            let mut flipped = bytes.clone();
            flipped[place] ^= 1;
            assert!(plan.decode(&params, object, &flipped).is_err(), "{place}");
        }
    }
    // One in the place of the other, of the public key's in the place of the holder's, and the reverse.
    assert!(plan.decode(&params, column, &sent[&Object::Keys]).is_err());
    assert!(plan.decode(&params, Object::Keys, &sent[&column]).is_err());
    let public = Payload::Ciphertexts(setting.public.encrypt(&[1], &mut setting.rng).unwrap());
    assert!(
        plan.decode(&params, column, &public.encode(&params))
            .is_err()
    );
    let before = plan.under(Encryption::PublicKey);
    assert!(before.decode(&params, column, &sent[&column]).is_err());
    let keys = before.decode(&params, Object::Keys, &sent[&Object::Keys]);
    assert!(matches!(keys, Err(Error::Object(_))));
}

#[test]
fn keys_of_another_set_or_layout_are_refused() {
    let mut setting = Setting::new(P1, 100);
    let own = setting.own();
    let sent = setting.send(&own);
    let mut large = Setting::new(P1_LARGE, 100);
    let other = large.own();
    let keys = &large.send(&other)[&Object::Keys];
    assert!(
        setting
            .plan
            .decode(&setting.params, Object::Keys, keys)
            .is_err()
    );
    let wider = UploadPlan {
        layout: Layout::for_records(1000).unwrap(),
        ..setting.plan
    };
    let keys = &sent[&Object::Keys];
    assert!(wider.decode(&setting.params, Object::Keys, keys).is_err());
    // A key of one set encrypts nothing of another.
    let encryptor = Encryptor::new(&setting.public, Some(&other));
    let holder = Holder::new(&setting.table, 1000, Noise::Fresh, encryptor, setting.plan);
    assert!(holder.is_err());
}

#[test]
fn a_key_is_read_back_from_text_alone_that_it_was_written_as() {
    let mut setting = Setting::new(P1, 100);
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
        assert!(!refused.contains(&text[100..140]), "it quotes the key");
    }
}
