//! Shared helpers of the targets: valid encodings, edits that the fuzzer controls, and matching checksums.
//!
//! Encodings are large, and all of them end in a checksum. A fuzzer that made them from nothing would never get past
//! it. Targets that need it therefore read the fuzzer's bytes as edits of a valid encoding, and correct its
//! checksums. This is what an attacker who knows the format can send.

use std::sync::{LazyLock, Mutex};

use fhaim_domain::{Dialect, ReadOptions, WriteOptions, check_schema, read_csv, write_csv};
use fhaim_he::{
    Backend, Cell, Ciphertext, Columns, Combination, EncryptedTable, EvaluationContext,
    EvaluationKeys, Factors, Layout, PagePlan, ParameterSet, Parameters, Partial, PublicKey,
    STANDARD, SecretKey, Threads, TileTask, UploadCiphertext, UploadKey, UploadSwitchKeys, WIDE,
};
use fhaim_intake::{InferOptions, infer_schema};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

/// Number of bytes of an encoded object before its body, as in fhaim-he's codec.
const HEADER: usize = 24;

/// A parameter set with the keys of a dataset.
pub struct Keys {
    /// The parameters.
    pub params: Parameters,
    /// The secret key.
    pub secret: SecretKey,
    /// The public key.
    pub public: PublicKey,
    /// An upload key for the same parameters.
    pub upload: UploadKey,
}

impl Keys {
    fn new(set: ParameterSet) -> Self {
        let mut rng = rng();
        let params = Parameters::new(set).expect("the set is one of the crate's own");
        let secret = SecretKey::random(&params, &mut rng).expect("the parameters are sound");
        let public = secret.public_key(&mut rng).expect("the key is sound");
        let upload = UploadKey::random(&params, &mut rng).expect("the parameters are sound");
        Self {
            params,
            secret,
            public,
            upload,
        }
    }

    /// Encrypts a polynomial under the dataset's key, once under each plaintext modulus.
    pub fn ciphertexts(&self) -> Vec<Ciphertext> {
        let encrypted = self.public.encrypt(&[1, -2, 3], &mut rng());
        encrypted.expect("three coefficients fit")
    }
}

/// Keys under a set with one plaintext modulus, and under a set with two.
pub static KEYS: [LazyLock<Keys>; 2] = [
    LazyLock::new(|| Keys::new(STANDARD)),
    LazyLock::new(|| Keys::new(WIDE)),
];

/// The objects that a sole holder makes with its upload key.
pub struct HolderObjects {
    /// The parameters.
    pub params: Parameters,
    /// The shape of the table that the switching keys are for.
    pub layout: Layout,
    /// The key, a ciphertext under it, and its switching keys without and with those for products.
    pub encoded: [Vec<u8>; 4],
}

impl HolderObjects {
    /// Makes the objects.
    pub fn new(set: ParameterSet) -> Self {
        let mut rng = rng();
        let Keys {
            params,
            public,
            upload: key,
            ..
        } = Keys::new(set);
        let layout = Layout::for_records(100).expect("100 records have a layout");
        let encrypted = key.encrypt(&[1, -2, 3], &mut rng);
        let [ciphertext, ..] = &encrypted.expect("three coefficients fit")[..] else {
            unreachable!("every set has a plaintext modulus");
        };
        let mut keys = |layout| {
            let keys = key.switch_keys(&public, layout, &mut rng);
            keys.expect("the keys are of one set").to_bytes()
        };
        Self {
            encoded: [
                key.to_bytes().to_vec(),
                ciphertext.to_bytes(&params),
                keys(None),
                keys(Some(layout)),
            ],
            params,
            layout,
        }
    }
}

/// A table of two record chunks, and the tasks of a small batch over it.
pub struct Tiles {
    keys: EvaluationKeys,
    switch_keys: UploadSwitchKeys,
    table: EncryptedTable,
    /// The tasks, one for each record chunk.
    pub tasks: Vec<TileTask>,
}

impl Tiles {
    fn new() -> Self {
        let Keys {
            params,
            secret,
            public,
            upload,
        } = &*KEYS[0];
        let keys = secret.evaluation_keys(&mut rng());
        let keys = keys.expect("the key is sound");
        let layout = Layout::for_records(8192 + 5).expect("two chunks have a layout");
        let switch_keys = upload.switch_keys(public, Some(layout), &mut rng());
        let switch_keys = switch_keys.expect("the keys are of one set");
        let mut rng = rng();
        let mut chunk = || -> Vec<UploadCiphertext> {
            let sent = upload.encrypt(&[1, 0, 1], &mut rng);
            let sent = sent.expect("three coefficients fit").into_iter();
            sent.map(|one| one.expand(params).expect("it is of these parameters"))
                .collect()
        };
        let columns = (0..3).map(|_| vec![chunk(), chunk()]).collect();
        let table = EncryptedTable::new(params, layout, columns);
        let table = table.expect("every column has both chunks");
        let factors = Factors {
            left: &[Combination(vec![(0, 2), (1, -3)])],
            right: &[Combination::column(2)],
        };
        let product = Cell::Product { left: 0, right: 0 };
        let page = vec![(0, product), (1, Cell::Sum { left: 0 }), (40, product)];
        let context = context(&keys, &switch_keys, layout);
        let plan = PagePlan::new(&context, &table, 0, factors, &[page]);
        let tasks = plan.expect("the cells are the factors'").tasks(0);
        drop(context);
        Self {
            keys,
            switch_keys,
            table,
            tasks,
        }
    }

    /// Returns the parameters.
    pub fn params(&self) -> &Parameters {
        &KEYS[0].params
    }

    /// Runs one task, and returns the results of its tiles.
    ///
    /// # Errors
    /// [`fhaim_he::Error`] if the task names columns or record chunks that the table does not have.
    pub fn run(&self, task: &TileTask) -> fhaim_he::Result<Vec<Partial>> {
        self.run_tasks(std::slice::from_ref(task))
    }

    /// Runs the whole batch, and returns the results of its tiles.
    ///
    /// # Errors
    /// None: the tasks are the table's own.
    pub fn run_all(&self) -> fhaim_he::Result<Vec<Partial>> {
        self.run_tasks(&self.tasks)
    }

    fn run_tasks(&self, tasks: &[TileTask]) -> fhaim_he::Result<Vec<Partial>> {
        let context = context(&self.keys, &self.switch_keys, self.table.layout());
        let partials = Mutex::new(Vec::new());
        let take = |partial| {
            let mut partials = partials.lock().expect("nothing panics while it is held");
            partials.push(partial);
            Ok(())
        };
        Threads::default().run(&context, &self.table, tasks, &take)?;
        Ok(partials
            .into_inner()
            .expect("nothing panicked while it was held"))
    }
}

fn context<'a>(
    keys: &'a EvaluationKeys,
    switch_keys: &'a UploadSwitchKeys,
    layout: Layout,
) -> EvaluationContext<'a> {
    let context = EvaluationContext::new(keys, layout).with_switch_keys(switch_keys);
    context.expect("the keys are for this layout")
}

/// A table, its tasks and their results.
pub static TILES: LazyLock<Tiles> = LazyLock::new(Tiles::new);

/// Returns the same generator in every run, so that a finding can be repeated.
pub fn rng() -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(7)
}

/// Removes and returns the first byte, or 0 if there is none.
pub fn choice(data: &mut &[u8]) -> u8 {
    match data.split_first() {
        Some((&first, rest)) => {
            *data = rest;
            first
        }
        None => 0,
    }
}

/// Edits a valid encoding. Each step of `script` has an operation, a position and new bytes.
pub fn edited(valid: &[u8], mut script: &[u8]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    while let Some((&[what, low, middle, high, length], rest)) = script.split_first_chunk() {
        let place = u32::from_le_bytes([low, middle, high, 0]) as usize;
        // Half of the steps are near the beginning, where lengths and kinds are encoded.
        let within = if what & 0x80 == 0 { 256 } else { usize::MAX };
        let at = place % bytes.len().saturating_add(1).min(within);
        let (new, rest) = rest.split_at(rest.len().min(usize::from(length % 32)));
        match what % 4 {
            0 => bytes[at..]
                .iter_mut()
                .zip(new)
                .for_each(|(byte, &new)| *byte = new),
            1 => drop(bytes.splice(at..at, new.iter().copied())),
            2 => drop(bytes.drain(at..bytes.len().min(at + usize::from(length)))),
            _ => bytes.truncate(at),
        }
        script = rest;
    }
    bytes
}

/// Corrects the checksum of an encoded object of fhaim-he.
pub fn mend_checksum(bytes: &mut [u8]) {
    if let Some((header, body)) = bytes.split_first_chunk_mut::<HEADER>() {
        let digest = Sha256::new()
            .chain_update(&header[..16])
            .chain_update(&*body)
            .finalize();
        header[16..].copy_from_slice(&digest[..8]);
    }
}

/// Corrects the checksum at the end of a saved model.
pub fn correct_model_checksum(bytes: &mut [u8]) {
    if let Some((model, checksum)) = bytes.split_last_chunk_mut::<8>() {
        checksum.copy_from_slice(&Sha256::digest(&*model)[..8]);
    }
}

/// Appends the SHA-256 of bytes to them.
pub fn with_digest(mut bytes: Vec<u8>) -> Vec<u8> {
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

/// Drafts a schema for a table, accepts the proposed rules, checks the schema, and reads the table with it. A table that
/// is read can be written and read again.
pub fn draft_and_read(table: &[u8], dialect: &Dialect) {
    let options = InferOptions {
        dialect: *dialect,
        shared_by: 2,
        ..InferOptions::new("fuzz.csv", "draft")
    };
    let Ok(mut draft) = infer_schema(table, &options) else {
        return;
    };
    let rules: Vec<usize> = (0..draft.rules.len()).collect();
    draft.accept(&rules).expect("proposed rules fit together");
    check_schema(&draft.schema, None);
    let options = ReadOptions {
        dialect: *dialect,
        ..ReadOptions::new("fuzz.csv")
    };
    if let Ok(reading) = read_csv(draft.schema.clone(), table, &options) {
        let mut written = Vec::new();
        let writing = WriteOptions::new("again.csv");
        if write_csv(&reading.table, &mut written, &mut rng(), &writing).is_ok() {
            let again = read_csv(
                draft.schema,
                written.as_slice(),
                &ReadOptions::new("again.csv"),
            );
            again.expect("a written table can be read");
        }
    }
}
