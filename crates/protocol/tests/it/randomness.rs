//! Tests that an upload takes only keys from a random source such as the operating system, and not
//! values. Values would take millions of calls.

#![allow(clippy::unwrap_used)]

use fhaim_domain::{ReadOptions, Schema, Table, read_csv};
use fhaim_dp::LadderPlan;
use fhaim_he::{COMPACT, Parameters, SecretKey, UploadKey};
use fhaim_protocol::encryption::Encryptor;
use fhaim_protocol::holder::{self, Holder, HolderNoise};
use fhaim_protocol::upload::{Object, UploadPlan};
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// A source that records the length of every call.
struct Source {
    generator: ChaCha20Rng,
    asked: Vec<usize>,
}

impl RngCore for Source {
    fn next_u32(&mut self) -> u32 {
        self.asked.push(4);
        self.generator.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.asked.push(8);
        self.generator.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.asked.push(bytes.len());
        self.generator.fill_bytes(bytes);
    }
}

impl CryptoRng for Source {}

fn table() -> Table {
    let schema = r#"{"name": "t", "columns": [
        {"name": "c", "kind": "categorical", "categories": ["a", "b"]}]}"#;
    let schema = Schema::from_json("t", schema.as_bytes()).unwrap();
    let options = ReadOptions::new("t.csv");
    read_csv(schema, &b"c\na\nb\na\n"[..], &options)
        .unwrap()
        .table
}

#[test]
fn encrypting_an_object_takes_one_key_from_the_source() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let params = Parameters::new(COMPACT).unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let table = table();
    let ladder = LadderPlan::new(10, 1).unwrap();
    let plan = UploadPlan::for_table(table.domain(), table.records(), ladder, &COMPACT).unwrap();
    let own = UploadKey::random(&params, &mut rng).unwrap();
    let encryptor = Encryptor::sole(&public, &own);
    let holder = Holder::new(&table, u64::MAX, HolderNoise::Fresh, encryptor, plan).unwrap();
    let mut source = Source {
        generator: rng,
        asked: Vec::new(),
    };
    let column = Object::Column {
        column: 0,
        chunk: 0,
    };
    let noise = Object::Noise {
        page: 0,
        level: 0,
        index: 0,
    };
    for object in [column, noise] {
        holder.encode(object, &mut source).unwrap();
        assert!(source.asked == [32], "{} calls", source.asked.len());
        source.asked.clear();
    }
    holder::encrypt(&holder, &mut source, &|| ()).unwrap();
    assert_eq!(source.asked, vec![32; plan.object_count()]);
}
