//! Choice of the roots of unity, which is part of every stored format.

use crate::modular::Modulus;

/// Returns the primitive root of unity whose order is a power of two (at least 2), or `None` if the prime has none.
/// It is a repeated square root of -1.
///
/// Of the two square roots it takes the one that the algorithm of Tonelli and Shanks finds from the least non-square:
/// ciphertexts and keys are stored as values at its powers.
pub(super) fn primitive(m: Modulus, order: u64) -> Option<u64> {
    let q = m.value();
    if !order.is_power_of_two() || order < 2 || !(q - 1).is_multiple_of(order) {
        return None;
    }
    let half = (q - 1) / 2;
    // The least non-square is small: below 2 (ln q)^2 if Riemann's hypothesis holds.
    let no_square = (2..10_000).find(|&z| m.pow(z, half) == q - 1)?;
    let mut root = q - 1;
    for _ in 1..order.trailing_zeros() {
        root = square_root(m, no_square, root)?;
    }
    Some(root)
}

/// Returns a square root of x, or `None` if x is not a square.
fn square_root(m: Modulus, no_square: u64, x: u64) -> Option<u64> {
    let q = m.value();
    let mut twos = (q - 1).trailing_zeros();
    let odd = (q - 1) >> twos;
    let mut c = m.pow(no_square, odd);
    let mut t = m.pow(x, odd);
    let mut root = m.pow(x, odd.div_ceil(2));
    while t != 1 {
        // The least number of squarings that turn t into 1.
        let mut power = t;
        let mut squarings = 0;
        while power != 1 {
            power = m.mul(power, power);
            squarings += 1;
            if squarings == twos {
                return None;
            }
        }
        let b = m.pow(c, 1 << (twos - squarings - 1));
        twos = squarings;
        c = m.mul(b, b);
        t = m.mul(t, c);
        root = m.mul(root, b);
    }
    Some(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_primitive() {
        for q in [0x0fff_ffff_ffff_c001, 0x003f_ffff_ffe7_c001, 65537] {
            let m = Modulus::new(q);
            for bits in 1..=14 {
                let root = primitive(m, 1 << bits).unwrap();
                assert_eq!(m.pow(root, 1 << (bits - 1)), q - 1);
            }
        }
        assert_eq!(primitive(Modulus::new(65537), 1 << 17), None);
        assert_eq!(primitive(Modulus::new(65537), 3), None);
        assert_eq!(square_root(Modulus::new(65537), 3, 3), None);
    }
}
