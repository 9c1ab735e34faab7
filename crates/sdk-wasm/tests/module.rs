//! Ciphertexts of the WebAssembly module decrypt to the same values as those of the native holder.
//!
//! `FHAIM_WASM` is the path of the module (web/public/fhaim.wasm), which Node runs.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fhaim_domain::{ReadOptions, Schema, Table, read_csv};
use fhaim_dp::{LadderPlan, PAGE, generator};
use fhaim_he::{Parameters, SecretKey, UploadKey, UploadSwitchKeys};
use fhaim_protocol::encryption::{Encryptor, Payload};
use fhaim_protocol::holder::{Holder, HolderNoise};
use fhaim_protocol::terms::{Plan, Terms};
use fhaim_protocol::upload::{Object, UploadPlan};
use fhaim_release::UNIT_VARIANCE;
use rand::RngCore;
use serde_json::json;

/// More records than one chunk has, so that the upload has two chunks.
const RECORDS: usize = 8_500;

fn schema() -> Schema {
    let schema = json!({"name": "t", "columns": [
        {"name": "group", "kind": "categorical", "categories": ["a", "b", "c"], "nullable": true},
        {"name": "age", "kind": "numeric", "min": 0, "max": 100, "bins": 4, "integer": true}]});
    Schema::from_json("t.json", schema.to_string().as_bytes()).unwrap()
}

fn random_csv(rng: &mut impl RngCore) -> String {
    let mut text = String::from("group,age\n");
    for _ in 0..RECORDS {
        let group = ["a", "b", "c", ""][rng.next_u32() as usize % 4];
        text += &format!("{group},{}\n", rng.next_u32() % 101);
    }
    text
}

/// Runs the module on the table. Its objects are in the folder afterwards.
fn run(module: &str, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/module.mjs");
    let mut node = Command::new("node");
    let output = node.arg(script).arg(module).arg(folder).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
}

/// Returns the squares of a noise vector's integers, in units of their expected variance. This is the variance of the
/// level, or twice that in vector 1, which is the sum of two samples. The noise is at coefficients that the ladder
/// chooses; the other coefficients are zero.
fn noise_squares(ladder: &LadderPlan, object: Object, values: &[i128]) -> Vec<f64> {
    let Object::Noise { page, level, index } = object else {
        panic!("{object} is not noise");
    };
    let used = PAGE.min(ladder.positions() - page * PAGE);
    let variance = (UNIT_VARIANCE << (2 * level)) as f64 * (1 + index) as f64;
    let square = |&value: &i128| (value * value) as f64 / variance;
    let mut squares: Vec<f64> = values.iter().map(square).collect();
    squares.sort_by(|a, b| b.total_cmp(a));
    assert!(squares[used..].iter().all(|&s| s == 0.0), "{object}");
    squares.truncate(used);
    squares
}

/// Checks that all samples together have the variance of their levels, within five standard errors.
fn assert_variance(squares: &[f64]) {
    let count = squares.len() as f64;
    let ratio = squares.iter().sum::<f64>() / count;
    eprintln!("noise: {count} samples, {ratio:.3} of the expected variance");
    assert!((ratio - 1.0).abs() < 5.0 * (2.0 / count).sqrt(), "{ratio}");
}

fn written(folder: &Path, terms: &Terms, public: &[u8]) -> Table {
    fs::create_dir_all(folder).unwrap();
    let text = random_csv(&mut generator().unwrap());
    fs::write(folder.join("table.csv"), &text).unwrap();
    fs::write(folder.join("terms.json"), json!(terms).to_string()).unwrap();
    fs::write(folder.join("public-key"), public).unwrap();
    let options = ReadOptions::new("table.csv");
    read_csv(schema(), text.as_bytes(), &options).unwrap().table
}

fn upload_plan(plan: &Plan) -> UploadPlan {
    let ladder = plan.ladder().unwrap();
    UploadPlan::for_table(&plan.job.domain, RECORDS, ladder, &plan.core.set).unwrap()
}

/// Returns the values that an object encrypts, after switching it to the dataset's key.
fn decrypted(
    payload: Payload,
    keys: &UploadSwitchKeys,
    params: &Parameters,
    secret: &SecretKey,
) -> Vec<i128> {
    let all = payload.expanded(params).unwrap();
    let all: Vec<_> = all.iter().map(|one| keys.switch(one).unwrap()).collect();
    secret.decrypt(&all).unwrap().0.to_vec()
}

#[test]
#[ignore = "needs FHAIM_WASM and node"]
fn module_ciphertexts_decrypt_to_the_native_holders_values() {
    let module = std::env::var("FHAIM_WASM").expect("set FHAIM_WASM to the path of the module");
    let terms = Terms::new(schema(), 1.0, 1e-9, 16_384);
    let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
    let plan = terms.plan().unwrap();
    let params = plan.parameters().unwrap();
    let mut rng = generator().unwrap();
    let secret = SecretKey::random(&params, &mut rng).unwrap();
    let public = secret.public_key(&mut rng).unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("module");
    let table = written(&folder, &terms, &public.to_bytes().unwrap());
    run(&module, &folder);

    let upload = upload_plan(&plan);
    let own = UploadKey::random(&params, &mut rng).unwrap();
    let encryptor = Encryptor::sole(&public, &own);
    let native = Holder::new(
        &table,
        terms.record_bound,
        HolderNoise::Fresh,
        encryptor,
        upload,
    )
    .unwrap();
    let native_keys = native.encrypt(Object::Keys, &mut rng).unwrap();
    let native_keys = native_keys.keys().unwrap();
    let read = |place: usize, object: Object| {
        let bytes = fs::read(folder.join(format!("objects/{place}"))).unwrap();
        upload.decode(&params, object, &bytes).unwrap()
    };
    let keys = read(0, Object::Keys).keys().unwrap();
    let mut noise = Vec::new();
    for (place, object) in upload.objects().enumerate().skip(1) {
        let values = decrypted(read(place, object), &keys, &params, &secret);
        match object {
            Object::Column { .. } => {
                let native = native.encrypt(object, &mut rng).unwrap();
                let native = decrypted(native, &native_keys, &params, &secret);
                assert_eq!(values, native, "{object}");
            }
            Object::Noise { .. } => noise.extend(noise_squares(&upload.ladder, object, &values)),
            Object::Counts { .. } | Object::Keys => panic!("the holder uploads records"),
        }
    }
    assert_variance(&noise);
    fs::remove_dir_all(folder).unwrap();
}
