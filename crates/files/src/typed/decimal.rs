//! Text of decimal numbers, with all decimals of their scale.

use super::put;

/// Writes an unscaled integer with `scale` decimals.
pub(super) fn write_integer(unscaled: i128, scale: u32, out: &mut Vec<u8>) {
    write_digits(
        unscaled < 0,
        &unscaled.unsigned_abs().to_string(),
        scale,
        out,
    );
}

/// Writes an unscaled integer in big-endian bytes (two's complement) with `scale` decimals.
pub(super) fn write_bytes(bytes: &[u8], scale: u32, out: &mut Vec<u8>) {
    let is_negative = bytes.first().is_some_and(|&first| first >= 0x80);
    let mut magnitude = bytes.to_vec();
    if is_negative {
        negate(&mut magnitude);
    }
    write_digits(is_negative, &digits(magnitude), scale, out);
}

fn write_digits(is_negative: bool, digits: &str, scale: u32, out: &mut Vec<u8>) {
    let sign = if is_negative { "-" } else { "" };
    let scale = scale as usize;
    // At least one digit stands before the decimal point.
    let width = scale + 1;
    let digits = format!("{digits:0>width$}");
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    put(out, format_args!("{sign}{whole}"));
    if scale > 0 {
        put(out, format_args!(".{fraction}"));
    }
}

/// Replaces a number in big-endian bytes by its two's complement.
fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
}

/// Returns the decimal digits of an unsigned number in big-endian bytes.
fn digits(bytes: Vec<u8>) -> String {
    let (high, low) = bytes.split_at(bytes.len().saturating_sub(16));
    if high.iter().all(|&byte| byte == 0) {
        let low = low.iter();
        return low
            .fold(0u128, |number, &byte| number << 8 | u128::from(byte))
            .to_string();
    }
    long_digits(bytes)
}

/// Divides a number by ten until nothing is left.
fn long_digits(mut bytes: Vec<u8>) -> String {
    let mut digits = Vec::new();
    while bytes.iter().any(|&byte| byte != 0) {
        let mut rest = 0u16;
        for byte in &mut bytes {
            let part = rest << 8 | u16::from(*byte);
            // The rest is below ten, so the quotient is below 256.
            *byte = (part / 10) as u8;
            rest = part % 10;
        }
        digits.push(char::from(b'0' + rest as u8));
    }
    digits.iter().rev().collect()
}
