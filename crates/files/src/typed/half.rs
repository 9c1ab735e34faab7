//! Text of 16-bit floating-point numbers.

use half::f16;

use super::{TypedCell, ValueForm};

/// Writes a number in little-endian bytes. A fraction has as few digits as tell the number from its neighbours: 0.1 and
/// not 0.099975586.
pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    let Some(&[low, high]) = bytes.first_chunk() else {
        return;
    };
    let number = f16::from_le_bytes([low, high]);
    ValueForm::Plain.write(TypedCell::Double(shortest(number)), out);
}

fn shortest(number: f16) -> f64 {
    let exact = number.to_f64();
    if exact.fract() == 0.0 {
        return exact;
    }
    // Five significant digits are enough for the 11 bits of a fraction.
    let rounded = (0..5).filter_map(|digits| format!("{exact:.digits$e}").parse().ok());
    let mut same = rounded.filter(|&rounded: &f64| f16::from_f64(rounded) == number);
    same.next().unwrap_or(exact)
}
