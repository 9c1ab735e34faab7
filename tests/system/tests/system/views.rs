//! The view of each party: all messages on all links contain only what docs/DESIGN.md, section 1, allows.

use std::{collections::BTreeSet, fs};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use fhaim_api::{
    Page,
    batch::{Batch, BatchStatus},
    dataset::{Dataset, NewDataset, Voucher},
    job::NewJob,
    keys::{
        DatasetLedger, Decrypted, KeySet, NewKeySet, NewRun, NewSignature, Receipt, RunStanding,
        UploadKeyRequest, UploadKeySeeds, UploadSeedCall,
    },
    token::EndedTokens,
    upload::{Complete, Missing, NewUpload, Upload},
};
use fhaim_he::{
    EvaluationKeys, Layout, PAGE, Parameters, PublicKey, SecretKey, UploadCiphertext, coefficient,
    key_sharing::KeyShare,
};
use fhaim_kit::{Backing, HOLDER, KEYSHARE, Message, NAMES, Services, tables};
use fhaim_platform::{config::Sealing, seal::Sealer};
use fhaim_protocol::{
    encryption::{Encryption, Form, Payload},
    part::PartPlan,
    request::DecryptRequest,
    terms::Terms,
    upload::Object,
    upload_key::SEALED_SEED,
};
use serde::{Serialize, de::DeserializeOwned};
use sqlx::{ConnectOptions, Row};

use super::{PROGRAM, secret_leaks::Needles};

const GENERATION: &str = NAMES[0];
const COMPUTATION: &str = NAMES[1];
const CRYPTO: &str = NAMES[2];

/// An uploaded dataset, a finished job over it, and all messages.
pub(super) struct Job {
    /// Services with a recording proxy on every link.
    pub services: Services,
    /// Dataset of the user `ana`, possibly with other holders.
    pub dataset: String,
    /// Identifier of the job.
    pub job: String,
    /// All messages between parties.
    pub messages: Vec<Message>,
}

fn run() -> Job {
    let services = Services::start_captured(PROGRAM, &Backing::Local);
    services.sign_up("ana");
    let dataset = services.dataset("ana", &[]);
    let job = services.run("ana", &["job", "run", &dataset, "--yes", "--watch"]);
    let job = job.lines().next().unwrap().to_owned();
    Job {
        messages: services.messages(),
        services,
        dataset,
        job,
    }
}

impl Job {
    /// Returns the terms that the holder fixed.
    fn terms(&self) -> Terms {
        let made = self.bodies(HOLDER, CRYPTO, "PUT /v1/datasets/{id}");
        let made: NewKeySet = serde_json::from_slice(made[0].0).unwrap();
        made.terms.0
    }

    fn params(&self) -> Parameters {
        self.terms().plan().unwrap().parameters().unwrap()
    }

    /// Returns the bodies of requests and answers of all calls of one kind.
    fn bodies(&self, from: &str, to: &str, call: &str) -> Vec<(&[u8], &[u8])> {
        let calls = self.messages.iter().filter(|message| {
            message.from == from && message.to == to && template(&message.call) == call
        });
        let found: Vec<_> = calls
            .map(|message| (&message.sent[..], &message.received[..]))
            .collect();
        assert!(!found.is_empty(), "{from} to {to}: {call}");
        found
    }

    /// Returns the dataset's secret key from the crypto service's database.
    fn secret(&self) -> SecretKey {
        SecretKey::from_bytes(&self.params(), &self.stored_secret(2)).unwrap()
    }

    /// Returns a key service's key of the dataset, or its share, as the bytes in its database.
    fn stored_secret(&self, service: usize) -> Vec<u8> {
        let home = self.services.home(service);
        let sealer = Sealer::from_config(&Sealing {
            file: Some(home.join("sealing.key")),
            variable: None,
        });
        let database = format!("sqlite://{}", home.join("store.db").display());
        let sealed: Vec<u8> = tokio::runtime::Runtime::new().unwrap().block_on(async {
            let options: sqlx::sqlite::SqliteConnectOptions = database.parse().unwrap();
            let mut connection = options.read_only(true).connect().await.unwrap();
            let query = sqlx::query("SELECT secret FROM key_sets WHERE dataset = $1");
            let row = query.bind(&self.dataset).fetch_one(&mut connection).await;
            row.unwrap().get(0)
        });
        let context = format!("secret key of {}", self.dataset);
        sealer.unwrap().open(&context, &sealed).unwrap().to_vec()
    }

    /// Returns the numbers of the services that have the dataset's key or shares of it.
    fn key_services(&self) -> Vec<usize> {
        match self.terms().key_services.len() {
            0 => vec![2],
            shares => [2]
                .into_iter()
                .chain(KEYSHARE..KEYSHARE + shares - 1)
                .collect(),
        }
    }
}

/// Replaces identifiers, numbers and object names in a call with placeholders.
fn template(call: &str) -> String {
    let segments = call.split('/').map(|segment| {
        if uuid::Uuid::parse_str(segment).is_ok() {
            "{id}"
        } else if segment.parse::<u64>().is_ok() {
            "{n}"
        } else if segment.contains("%2F") {
            "{object}"
        } else {
            segment
        }
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Reads a body as this type, and checks that it has no other fields: serialized again, it has the same fields and
/// values.
fn exactly<T: Serialize + DeserializeOwned>(body: &[u8], place: &str) -> T {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap();
    let read: T = serde_json::from_slice(body).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(serde_json::to_value(&read).unwrap(), value, "{place}");
    read
}

/// Checks the contents of a call between parties, and returns whether the call is part of the design.
fn is_known(message: &Message, params: &Parameters, form: &Form) -> bool {
    let place = format!("{} to {}: {}", message.from, message.to, message.call);
    assert!(
        message.status.is_success() || message.status.as_u16() == 404,
        "{place}: {}",
        message.status
    );
    let call = template(&message.call);
    let (sent, received) = (&message.sent[..], &message.received[..]);
    let silent = || assert!(sent.is_empty(), "{place}");
    match (message.from, message.to, call.as_str()) {
        (_, _, "GET /.well-known/jwks.json") => {
            silent();
            let keys: serde_json::Value = serde_json::from_slice(received).unwrap();
            for key in keys["keys"].as_array().unwrap() {
                assert!(key.get("d").is_none(), "{place}");
            }
        }
        (_, GENERATION, "GET /.well-known/ended-tokens.json") => {
            silent();
            exactly::<EndedTokens>(received, &place);
        }
        // Accounts: data about users, not about records.
        (HOLDER, GENERATION, "POST /v1/accounts" | "POST /v1/sessions" | "GET /v1/account") => {}
        (HOLDER, GENERATION, "POST /v1/sessions/refresh") => {}
        // The generation service receives terms, then released integers.
        // The command lists the account's datasets, to find those with the same schema that this machine does not know.
        (HOLDER, GENERATION, "GET /v1/datasets") => {
            silent();
            exactly::<Page<Dataset>>(received, &place);
        }
        (HOLDER, GENERATION, "PUT /v1/datasets/{id}") => {
            exactly::<NewDataset>(sent, &place);
            exactly::<Dataset>(received, &place);
        }
        (HOLDER, GENERATION, "GET /v1/datasets/{id}/voucher") => {
            silent();
            exactly::<Voucher>(received, &place);
        }
        (HOLDER, GENERATION, "GET /v1/datasets/{id}" | "POST /v1/datasets/{id}/ready") => {
            silent();
            exactly::<Dataset>(received, &place);
        }
        (HOLDER, GENERATION, "PUT /v1/datasets/{id}/jobs/{id}") => {
            exactly::<NewJob>(sent, &place);
            exactly::<fhaim_api::job::Job>(received, &place);
        }
        (HOLDER, GENERATION, _) if call.contains("/jobs") => silent(),
        (GENERATION, COMPUTATION, "GET /v1/datasets/{id}") => {
            silent();
            exactly::<Upload>(received, &place);
        }
        (GENERATION, COMPUTATION, "PUT /v1/datasets/{id}/jobs/{id}/batches/{n}") => {
            exactly::<Batch>(sent, &place);
            exactly::<BatchStatus>(received, &place);
        }
        (GENERATION, COMPUTATION, "GET /v1/datasets/{id}/jobs/{id}/batches/{n}") => {
            silent();
            exactly::<BatchStatus>(received, &place);
        }
        // The computation service receives ciphertexts, public and evaluation keys, and released integers.
        (HOLDER, COMPUTATION, "PUT /v1/datasets/{id}") => {
            exactly::<NewUpload>(sent, &place);
        }
        (HOLDER, COMPUTATION, "GET /v1/datasets/{id}/contributions/{n}/missing") => {
            exactly::<Missing>(received, &place);
        }
        (HOLDER, COMPUTATION, "GET /v1/datasets/{id}") => silent(),
        // A holder withdraws its part from a dataset of several holders.
        (HOLDER, COMPUTATION, "DELETE /v1/datasets/{id}/contributions/{n}") => silent(),
        (HOLDER, COMPUTATION, "POST /v1/datasets/{id}/contributions/{n}/complete") => {
            exactly::<Complete>(sent, &place);
        }
        (HOLDER, COMPUTATION, "PUT /v1/datasets/{id}/contributions/{n}/objects/{object}") => {
            // `uploads_are_ciphertexts` checks the contents, because it has all objects.
            assert_eq!(sent.len(), form.polynomial_bytes(params.set()));
        }
        // The switching keys of a sole holder.
        (HOLDER, COMPUTATION, KEYS) => {
            assert_eq!(form.encryption, Encryption::OwnKey);
            assert_eq!(sent.len(), form.object_bytes(params, Object::Keys));
        }
        (COMPUTATION, CRYPTO, "GET /v1/datasets/{id}/public-key")
        | (HOLDER, CRYPTO, "GET /v1/datasets/{id}/public-key") => {
            silent();
            PublicKey::from_bytes(params, received).unwrap();
        }
        (COMPUTATION, CRYPTO, "GET /v1/datasets/{id}/evaluation-keys") => {
            silent();
            EvaluationKeys::from_bytes(params, received).unwrap();
        }
        (COMPUTATION, CRYPTO, "PUT /v1/datasets/{id}/jobs/{id}") => {
            exactly::<NewRun>(sent, &place);
            exactly::<RunStanding>(received, &place);
        }
        (COMPUTATION, CRYPTO, "POST /v1/datasets/{id}/jobs/{id}/decryptions") => {
            DecryptRequest::from_bytes(params, sent).unwrap();
            exactly::<Decrypted>(received, &place);
        }
        // The crypto service receives terms, then sealed pages.
        (HOLDER, CRYPTO, "PUT /v1/datasets/{id}") => {
            exactly::<NewKeySet>(sent, &place);
            exactly::<KeySet>(received, &place);
        }
        (HOLDER, CRYPTO, "GET /v1/datasets/{id}") => silent(),
        // Several holders: their signatures, and the signed terms for the computation service.
        (HOLDER, CRYPTO, "PUT /v1/datasets/{id}/signature") => {
            exactly::<NewSignature>(sent, &place);
            exactly::<KeySet>(received, &place);
        }
        (HOLDER, CRYPTO, "POST /v1/datasets/{id}/upload-key") => {
            assert_eq!(form.encryption, Encryption::RosterKey);
            exactly::<UploadKeyRequest>(sent, &place);
            let answer: UploadKeySeeds = exactly(received, &place);
            are_sealed(&answer, params.shares());
        }
        (HOLDER, CRYPTO, "PUT /v1/datasets/{id}/withdrawal")
        | (COMPUTATION, CRYPTO, "GET /v1/datasets/{id}") => {
            silent();
            exactly::<KeySet>(received, &place);
        }
        (HOLDER, CRYPTO, "GET /v1/datasets/{id}/receipt") => {
            silent();
            exactly::<Receipt>(received, &place);
        }
        (HOLDER, CRYPTO, "GET /v1/datasets/{id}/ledger") => {
            silent();
            serde_json::from_slice::<DatasetLedger>(received).unwrap();
        }
        // Health checks of peers.
        (GENERATION | COMPUTATION | CRYPTO, _, HEALTH) => {
            silent();
            assert_eq!(received, b"ok\n");
        }
        _ => return false,
    }
    true
}

/// Checks that an answer has one encrypted seed from each key service.
fn are_sealed(answer: &UploadKeySeeds, key_services: usize) {
    let lengths = answer
        .bytes()
        .unwrap()
        .iter()
        .map(Vec::len)
        .collect::<Vec<_>>();
    assert_eq!(lengths, vec![SEALED_SEED; key_services]);
}

/// Route to which a holder sends the keys that switch its ciphertexts to the dataset's key.
const KEYS: &str = "PUT /v1/datasets/{id}/contributions/{n}/objects/keys";

/// Route with which services check whether their peers are up.
const HEALTH: &str = "GET /healthz";

#[test]
#[ignore = "slow"]
fn messages_of_a_sole_holder_are_part_of_the_design() {
    check(&run(), &[Some(Layout::for_records(300).unwrap())]);
}

/// Checks all messages on all links. Each holder's records have its layout; counts have none.
pub(super) fn check(job: &Job, layouts: &[Option<Layout>]) {
    let params = job.params();
    let form = Form {
        encryption: job.terms().encryption(),
        layout: layouts.first().copied().flatten(),
    };
    let known = |message: &&Message| is_known(message, &params, &form);
    let strangers = job.messages.iter().filter(|message| !known(message));
    let strangers: BTreeSet<_> = strangers
        .map(|m| format!("{} to {}: {}", m.from, m.to, template(&m.call)))
        .collect();
    assert!(strangers.is_empty(), "{strangers:#?}");
    let links: BTreeSet<_> = job.messages.iter().map(|m| (m.from, m.to)).collect();
    for link in [
        (GENERATION, CRYPTO),
        (CRYPTO, GENERATION),
        (CRYPTO, COMPUTATION),
    ] {
        let calls = job.messages.iter().filter(|m| (m.from, m.to) == link);
        for call in calls {
            let allowed = [
                "GET /.well-known/jwks.json",
                "GET /.well-known/ended-tokens.json",
                HEALTH,
            ];
            assert!(allowed.contains(&&*call.call), "{link:?}: {}", call.call);
        }
    }
    eprintln!("{} messages on {} links", job.messages.len(), links.len());
    no_record_in_the_clear(job);
    uploads_are_ciphertexts(job, &params, layouts);
    no_part_of_the_secret_key(job);
    upload_keys_are_fetched_encrypted(job);
    decryptor_learns_only_releases(job, &params);
}

/// Checks that no message has a record of the table as text.
fn no_record_in_the_clear(job: &Job) {
    let table = fs::read_to_string(job.services.folder.path().join("t.csv")).unwrap();
    let records = Needles::new(table.lines().skip(1).map(str::as_bytes));
    assert!(records.count > 50);
    for message in &job.messages {
        let everything = [
            message.call.as_bytes(),
            message.headers.as_bytes(),
            &message.sent,
            &message.received,
        ];
        for bytes in everything {
            let found = records.find(bytes).map(String::from_utf8_lossy);
            assert_eq!(found, None, "{}", message.call);
        }
    }
}

/// Checks that the computation service receives exactly the objects of each holder's plan, that all are ciphertexts,
/// and that no two are equal, although many columns of the table are. No two ciphertexts under a holder's own key have
/// the same second half, because that would reveal the difference of their messages.
fn uploads_are_ciphertexts(job: &Job, params: &Parameters, layouts: &[Option<Layout>]) {
    let terms = job.terms();
    assert_eq!(layouts.len(), terms.part_count());
    let plans = (0..).zip(layouts);
    let plans: Vec<PartPlan> = plans
        .map(|(holder, &layout)| terms.part_plan(holder, layout).unwrap())
        .collect();
    let (mut seen, mut masks) = (BTreeSet::new(), BTreeSet::new());
    let objects = "PUT /v1/datasets/{id}/contributions/{n}/objects/{object}";
    for message in &job.messages {
        if ![objects, KEYS].contains(&&*template(&message.call)) {
            continue;
        }
        let mut path = message.call.rsplit('/');
        let name = path.next().unwrap().replace("%2F", "/");
        let holder: usize = path.nth(1).unwrap().parse().unwrap();
        let object: Object = name.parse().unwrap();
        let payload = plans[holder].decode(params, object, &message.sent).unwrap();
        for [first, second] in halves(payload, params, &message.sent) {
            // A clear polynomial would have a second half of zeros, or bytes that are not uniform.
            assert!(is_uniform(&first) && is_uniform(&second), "{name}");
            assert!(
                masks.insert(second),
                "{name} has the mask of an earlier object"
            );
        }
        assert!(
            seen.insert(message.sent.clone()),
            "{name} is equal to an earlier object"
        );
    }
    let objects: usize = plans.iter().map(PartPlan::object_count).sum();
    assert_eq!(seen.len(), objects);
}

/// Returns both polynomials of each ciphertext of an object, with one word per residue. For keys, returns both halves
/// of their bytes.
fn halves(payload: Payload, params: &Parameters, bytes: &[u8]) -> Vec<[Vec<u8>; 2]> {
    // The first byte is the plaintext modulus; both polynomials follow.
    let halves = |words: Vec<u8>| {
        let (first, second) = words[1..].split_at(words.len() / 2);
        [first.to_vec(), second.to_vec()]
    };
    match payload {
        Payload::Seeded(_) => {
            let words = |one: &UploadCiphertext| {
                let mut words = Vec::new();
                one.digest_into(|bytes| words.extend_from_slice(bytes));
                words
            };
            let all = payload.expanded(params).unwrap();
            all.iter().map(words).map(halves).collect()
        }
        Payload::Keys(_) => {
            let (first, second) = bytes.split_at(bytes.len() / 2);
            vec![[first.to_vec(), second.to_vec()]]
        }
    }
}

/// Checks that the low bytes of 64-bit words are uniformly distributed.
fn is_uniform(words: &[u8]) -> bool {
    let mut counts = [0f64; 256];
    for word in words.chunks_exact(8) {
        counts[usize::from(word[0])] += 1.0;
    }
    let expected = counts.iter().sum::<f64>() / 256.0;
    let chi: f64 = counts
        .iter()
        .map(|c| (c - expected).powi(2) / expected)
        .sum();
    // Chi-square with 255 degrees of freedom, within 8 standard deviations.
    (chi - 255.0).abs() < 8.0 * (2.0 * 255f64).sqrt()
}

/// Checks that no message, and no file of the crypto service (database, journal, log), has 24 consecutive coefficients
/// of the secret key, or the bytes from which they are drawn.
fn no_part_of_the_secret_key(job: &Job) {
    let secret = job.secret();
    let coefficients = secret.coefficients().iter();
    let coefficients: Vec<u8> = coefficients.map(|&c| c as i8 as u8).collect();
    let stored = secret.to_bytes();
    let root = &stored[stored.len() - 32..];
    let parts = Needles::new(coefficients.chunks_exact(24).chain([root]));
    assert!(parts.count > 300);
    let kept = fs::read_dir(job.services.home(2)).unwrap();
    let kept = kept
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file());
    let kept: Vec<Vec<u8>> = kept.map(|path| fs::read(path).unwrap()).collect();
    assert!(kept.iter().map(Vec::len).sum::<usize>() > PAGE);
    let bodies = job.messages.iter().flat_map(|m| [&m.sent, &m.received]);
    for bytes in bodies.chain(&kept) {
        assert!(parts.find(bytes).is_none());
    }
}

/// Checks that each holder of a roster fetches its upload key with encrypted seeds, and that no seed is in any message,
/// neither as bytes nor as text.
pub(super) fn upload_keys_are_fetched_encrypted(job: &Job) {
    let (terms, params) = (job.terms(), job.params());
    let upload_keys: Vec<&Message> = job
        .messages
        .iter()
        .filter(|message| template(&message.call).ends_with("/upload-key"))
        .collect();
    if terms.roster.is_none() {
        assert!(upload_keys.is_empty());
        return;
    }
    let (holders, services) = (terms.part_count(), job.key_services());
    let of = |from: &str, to: &str| {
        let messages = upload_keys.iter();
        let messages = messages.filter(|message| (message.from, message.to) == (from, to));
        messages.copied().collect::<Vec<_>>()
    };
    let mut found = of(HOLDER, CRYPTO);
    assert_eq!(found.len(), holders);
    let mut sealed = BTreeSet::new();
    for message in &found {
        let place = format!("{} to {}: {}", message.from, message.to, message.call);
        exactly::<UploadKeyRequest>(&message.sent, &place);
        let answer: UploadKeySeeds = exactly(&message.received, &place);
        are_sealed(&answer, services.len());
        sealed.extend(answer.seeds);
    }
    assert_eq!(sealed.len(), holders * services.len());
    // The first key service asks the others for their seeds.
    for (_, name) in services.iter().skip(1).zip(["keyshare1", "keyshare2"]) {
        let asked = of(CRYPTO, name);
        assert_eq!(asked.len(), holders);
        for message in &asked {
            let place = format!("{} to {}: {}", message.from, message.to, message.call);
            assert_eq!(template(&message.call), "POST /v1/shares/{id}/upload-key");
            exactly::<UploadSeedCall>(&message.sent, &place);
            let answer: UploadKeySeeds = exactly(&message.received, &place);
            are_sealed(&answer, 1);
            assert!(
                sealed.contains(&answer.seeds[0]),
                "the first key service must pass on an encrypted seed unchanged"
            );
        }
        found.extend(asked);
    }
    assert_eq!(found.len(), upload_keys.len());

    let mut seeds: Vec<Vec<u8>> = Vec::new();
    for &service in &services {
        let stored = job.stored_secret(service);
        let seed = |holder| match services.len() {
            1 => SecretKey::from_bytes(&params, &stored)
                .unwrap()
                .upload_seed(holder),
            _ => KeyShare::from_bytes(&params, &stored)
                .unwrap()
                .upload_seed(holder),
        };
        seeds.extend((0..holders).map(|holder| seed(holder).to_vec()));
    }
    let written: Vec<Vec<u8>> = seeds
        .iter()
        .flat_map(|seed| {
            let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
            [
                seed.clone(),
                hex.into_bytes(),
                STANDARD.encode(seed).into_bytes(),
                URL_SAFE_NO_PAD.encode(seed).into_bytes(),
            ]
        })
        .collect();
    let needles = Needles::new(written.iter().map(Vec::as_slice));
    for message in &job.messages {
        for bytes in [message.headers.as_bytes(), &message.sent, &message.received] {
            assert!(needles.find(bytes).is_none(), "{}", message.call);
        }
    }
}

/// Checks that the crypto service can decrypt only the released integers. All other values are uniform modulo t.
fn decryptor_learns_only_releases(job: &Job, params: &Parameters) {
    let secret = job.secret();
    let t = params.set().plaintext_moduli[0];
    let mut masks = Vec::new();
    let mut answered = Vec::new();
    let call = "POST /v1/datasets/{id}/jobs/{id}/decryptions";
    for (sent, received) in job.bodies(COMPUTATION, CRYPTO, call) {
        let request = DecryptRequest::from_bytes(params, sent).unwrap();
        let answer: Decrypted = serde_json::from_slice(received).unwrap();
        answered.extend(answer.answers);
        for page in &request.pages {
            let (values, _) = secret.decrypt(&page.ciphertexts).unwrap();
            let mut rest: BTreeSet<usize> = (0..PAGE).map(coefficient).collect();
            for part in &page.parts {
                for position in part.span.start..part.span.start + part.span.len {
                    rest.remove(&coefficient(position));
                }
            }
            masks.extend(rest.into_iter().map(|c| values[c].rem_euclid(t.into())));
        }
    }
    assert!(masks.len() > 10_000);
    assert!(uniform_below(&masks, t), "{} masked values", masks.len());
    // The generation service receives those integers and no others.
    let releases = job.services.json("ana", &["job", "releases", &job.job]);
    let releases = releases.as_array().unwrap().iter();
    let shown: Vec<Vec<i64>> = releases
        .map(|release| serde_json::from_value(release["values"].clone()).unwrap())
        .collect();
    assert_eq!(shown, answered);
}

/// Checks that values are uniform below `t`: chi-square over 64 ranges of equal size, within 8 standard deviations.
fn uniform_below(values: &[i128], t: u64) -> bool {
    let mut counts = [0f64; 64];
    for value in values {
        counts[(value * 64 / i128::from(t)) as usize] += 1.0;
    }
    let expected = values.len() as f64 / 64.0;
    let chi: f64 = counts
        .iter()
        .map(|c| (c - expected).powi(2) / expected)
        .sum();
    (chi - 63.0).abs() < 8.0 * (2.0 * 63f64).sqrt()
}

/// Two tables have different records, and numbers of records with the same next power of two. Their uploads have the
/// same calls with the same lengths. The order of objects may differ, because they are encrypted in parallel.
#[test]
#[ignore = "slow"]
fn uploads_of_different_tables_have_equal_lengths() {
    let shapes = [300, 257].map(|records| {
        let services = Services::start_captured(PROGRAM, &Backing::Local);
        tables::write_small(services.folder.path(), records);
        if records == 257 {
            let file = services.folder.path().join("t.csv");
            let rows = "10,blue,1\n".repeat(records);
            fs::write(file, format!("x,c,y\n{rows}")).unwrap();
        }
        services.sign_up("ana");
        services.dataset("ana", &[]);
        let messages = services.messages();
        let from_holder = messages.iter().filter(|message| message.from == HOLDER);
        let mut shapes: Vec<_> = from_holder
            .map(|m| (m.to, template(&m.call), m.sent.len(), m.headers.len()))
            .collect();
        shapes.sort_unstable();
        shapes
    });
    assert!(shapes[0].len() > 20);
    assert_eq!(shapes[0], shapes[1]);
}
