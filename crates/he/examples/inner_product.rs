//! Encrypts two columns, and decrypts the inner product of both and the sum of one.
//!
//! ```sh
//! cargo run --release -p fhaim-he --example inner_product
//! ```

use fhaim_he::{
    COMPACT, Cell, Combination, EncryptedTable, EvaluationWork, Evaluator, Factors, Layout,
    Parameters, Result, SecretKey, UploadKey, coefficient,
};
use rand::{CryptoRng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Number of patients. Every third has one disease, and every fifth has another.
const RECORDS: i64 = 10_000;

fn main() -> Result<()> {
    let mut rng = ChaCha20Rng::from_os_rng();
    let (both, first) = inner_product(&mut rng)?;
    println!("{first} records have the first property, {both} have both");
    Ok(())
}

/// Returns the inner product of both columns, and the sum of the first.
fn inner_product(rng: &mut impl CryptoRng) -> Result<(i128, i128)> {
    // The key service draws the keys, and keeps the secret key.
    let params = Parameters::new(COMPACT)?;
    let secret = SecretKey::random(&params, rng)?;
    let public = secret.public_key(rng)?;
    let keys = secret.evaluation_keys(rng)?;

    // The holder draws an upload key, and encrypts each column: one ciphertext for every 8192 records. The holder's
    // switching keys bring results under the upload key to the key service's key.
    let layout = Layout::for_records(RECORDS as usize)?;
    let upload_key = UploadKey::random(&params, rng)?;
    let switch_keys = upload_key.switch_keys(&public, Some(layout), rng)?;
    let columns: [Vec<i64>; 2] = [3, 5].map(|k| {
        let one_hot = |record| i64::from(record % k == 0);
        (0..RECORDS).map(one_hot).collect()
    });
    let mut encrypt = |column: &Vec<i64>| {
        let chunks = column.chunks(layout.stride());
        let encrypted = chunks.map(|chunk| {
            let seeded = upload_key.encrypt(chunk, rng)?.into_iter();
            seeded.map(|c| c.expand(&params)).collect()
        });
        encrypted.collect::<Result<Vec<_>>>()
    };
    let columns = columns.iter().map(&mut encrypt).collect::<Result<_>>()?;
    let table = EncryptedTable::new(&params, layout, columns)?;

    // The computation service packs both statistics into one page: cells 0 and 1.
    let factors = Factors {
        left: &[Combination::column(0)],
        right: &[Combination::column(1)],
    };
    let product = Cell::Product { left: 0, right: 0 };
    let cells = [vec![(0, product), (1, Cell::Sum { left: 0 })]];
    let evaluator = Evaluator::new(&keys, layout).with_switch_keys(&switch_keys)?;
    let pages = evaluator.pages(&table, 0, factors, &cells, &mut EvaluationWork::default())?;

    // The key service decrypts it. (A real one sees pages that `fhaim_he::seal` masked and flooded.)
    let page: Vec<_> = pages.into_iter().flatten().collect();
    let ciphertexts: Vec<_> = page.iter().map(|page| page.ciphertext().clone()).collect();
    let (values, _) = secret.decrypt(&ciphertexts)?;
    let cell = |p: usize| values.get(coefficient(p)).copied().unwrap_or_default();
    Ok((cell(0), cell(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_product_of_multiples_is_exact() {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        // Of 0, 1, ..., 9999: the multiples of 15, and the multiples of 3.
        assert_eq!(inner_product(&mut rng).unwrap(), (667, 3334));
    }
}
