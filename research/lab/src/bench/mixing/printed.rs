//! Printed figures for MNIST (Saha, Tonoy and Imtiaz 2025, table 1): test accuracy of a convolutional network with ten
//! parties, in percent, without noise and at epsilon 20 and 10.

/// l; the CAPE column, which is central DP-CDA; the conventional column.
const MNIST: [(usize, [f64; 3], [f64; 3]); 10] = [
    (1, [98.85, 10.80, 10.81], [86.80, 22.45, 23.05]),
    (2, [97.46, 67.22, 70.76], [83.83, 61.04, 59.40]),
    (4, [94.62, 78.08, 78.07], [81.09, 67.49, 66.19]),
    (8, [90.45, 78.02, 76.73], [79.70, 65.84, 65.01]),
    (16, [86.07, 76.91, 75.85], [78.92, 61.87, 63.49]),
    (32, [82.37, 75.77, 67.38], [78.08, 59.92, 58.71]),
    (64, [79.62, 71.75, 63.19], [77.24, 56.00, 54.25]),
    (128, [78.29, 66.56, 54.31], [78.76, 50.12, 45.92]),
    (256, [76.93, 36.20, 34.03], [77.06, 40.43, 36.08]),
    (512, [76.03, 25.97, 15.75], [77.91, 27.58, 30.29]),
];

/// The conventional column of figure 2, as far as the text has it: without noise, four records in a mix.
const PARTIES: [(usize, f64); 2] = [(5, 83.23), (50, 78.73)];

/// Number of parties of the paper's table.
const TABLE_PARTIES: usize = 10;

/// Returns the printed accuracy of a way at l, a budget and a number of parties, in percent. The CAPE column is the
/// same for every number of parties, and is next to `central`.
pub fn mnist(way: &str, mix: usize, epsilon: Option<f64>, parties: usize) -> Option<f64> {
    let (_, central, conventional) = MNIST.iter().find(|(l, _, _)| *l == mix)?;
    let column = match way {
        "central" => central,
        "conventional" if parties == TABLE_PARTIES => conventional,
        "conventional" if mix == 4 && epsilon.is_none() => {
            let found = PARTIES.iter().find(|(number, _)| *number == parties)?;
            return Some(found.1);
        }
        _ => return None,
    };
    match epsilon {
        None => Some(column[0]),
        Some(20.0) => Some(column[1]),
        Some(10.0) => Some(column[2]),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_figures_are_found_by_way_and_budget() {
        assert_eq!(mnist("central", 4, Some(10.0), 10), Some(78.07));
        assert_eq!(mnist("central", 4, Some(10.0), 50), Some(78.07));
        assert_eq!(mnist("conventional", 512, None, 10), Some(77.91));
        assert_eq!(mnist("shared", 4, None, 10), None);
        assert_eq!(mnist("central", 3, None, 10), None);
        assert_eq!(mnist("central", 4, Some(1.0), 10), None);
    }

    #[test]
    fn printed_figures_of_other_numbers_of_parties_are_not_shown() {
        assert_eq!(mnist("conventional", 4, None, 5), Some(83.23));
        assert_eq!(mnist("conventional", 4, Some(10.0), 5), None);
        assert_eq!(mnist("conventional", 8, None, 5), None);
        assert_eq!(mnist("conventional", 4, None, 7), None);
    }
}
