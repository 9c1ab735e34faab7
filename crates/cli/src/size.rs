//! Memory limits. A run that needs too much memory is rejected before it starts, with the column to coarsen.

use fhaim_domain::{Domain, Schema, pair_cells};
use fhaim_he::WIDE;

use crate::error::Error;

/// Available memory to assume if the system does not report it: 2 GiB.
const UNKNOWN_MEMORY: u64 = 2 << 30;

/// Maximum number of records in a table, which is the limit of the largest encryption parameters.
pub const MAX_RECORDS: usize = WIDE.max_records as usize;

/// Bytes per value that is read: its codes and those of a copy.
const CODE_BYTES: u64 = 16;

/// Bytes per cell of a marginal.
const CELL_BYTES: u64 = 8;

/// Number of tables over all pairs of columns that are in memory together: the probe's answers, their projections, and
/// the model's marginals.
const PAIR_TABLES: u64 = 3;

/// Returns the memory of a run in the clear over `domain`, in bytes.
///
/// This includes tables over all pairs, the records and their synthetic copy, and a model with its messages and
/// gradient.
pub fn local_bytes(domain: &Domain, records: usize, model_bytes: usize) -> u64 {
    let codes = (records * domain.len() * size_of::<u32>()) as u64;
    pair_cells(domain)
        .saturating_mul(CELL_BYTES * PAIR_TABLES)
        .saturating_add(2 * codes)
        .saturating_add((model_bytes as u64).saturating_mul(4))
}

/// Returns the memory for the schema's domain according to `bytes`, if it is within `limit`.
///
/// # Errors
/// [`Error::TooLarge`] if the memory is above the limit. The error says how much to coarsen the widest columns.
pub fn check(
    schema: &Schema,
    limit: u64,
    bytes: impl Fn(&Domain) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let needed = bytes(schema.domain());
    if matches!(needed, Ok(needed) if needed <= limit) {
        return needed;
    }
    let fits = |domain: &Domain| bytes(domain).is_ok_and(|needed| needed <= limit);
    let reason = match needed {
        Ok(needed) => format!(
            "this needs about {} MB of memory, but only {} MB may be used",
            megabytes(needed),
            megabytes(limit)
        ),
        // The size is unknown. The error stands unless coarsening helps.
        Err(error) => match most_values(schema.domain(), fits) {
            Some(_) => error.to_string(),
            None => return Err(error),
        },
    };
    let advice = match most_values(schema.domain(), fits) {
        Some(most) => coarsen(schema, most),
        None => "use fewer columns, a smaller --model-mb or a machine with more memory".to_owned(),
    };
    Err(Error::TooLarge { reason, advice })
}

/// Returns the largest number of values per column for which the domain fits, or `None` if none fits.
fn most_values(domain: &Domain, fits: impl Fn(&Domain) -> bool) -> Option<usize> {
    let capped = |most: usize| {
        let sizes = domain.sizes().iter().map(|&size| size.min(most));
        Domain::new(sizes.collect())
    };
    let (mut low, mut high) = (2, domain.sizes().iter().copied().max()?);
    if !fits(&capped(low)) {
        return None;
    }
    // Invariant: `low` fits, and `high` does not unless the two are equal.
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(&capped(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// Describes the coarsening of columns with more than `most` values, and names the widest.
fn coarsen(schema: &Schema, most: usize) -> String {
    let columns = schema.columns();
    let wide = || columns.iter().filter(|column| column.size() > most);
    // Reversed, because `max_by_key` returns the last of equally wide columns, and the first is wanted.
    let Some(widest) = wide().rev().max_by_key(|column| column.size()) else {
        return "use a machine with more memory".to_owned();
    };
    let others = match wide().count() - 1 {
        0 => String::new(),
        1 => ", and one more column in the same way".to_owned(),
        count => format!(", and {count} more columns in the same way"),
    };
    format!(
        "coarsen column {:?} from {} to {most} values{others}",
        widest.name(),
        widest.size()
    )
}

/// Converts bytes to MB, rounded up.
pub fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

/// Returns the number of records with `columns` columns that fit in memory, with a copy of them. It is at least 2^22.
pub fn most_records(columns: usize) -> usize {
    let bytes = CODE_BYTES.saturating_mul(columns.max(1) as u64);
    let most = usize::try_from(limit(None) / bytes).unwrap_or(usize::MAX);
    most.clamp(1 << 22, MAX_RECORDS)
}

/// Rejects drawing more records than fit in memory ([`most_records`]). `flag` is the advice in the error.
pub fn check_drawn(records: usize, columns: usize, flag: &str) -> Result<(), Error> {
    let most = most_records(columns);
    if records > most {
        return Err(Error::Usage(format!(
            "{records} records of {columns} columns do not fit in memory: draw at most {most} ({flag})"
        )));
    }
    Ok(())
}

/// Returns the memory limit in bytes: the given one, or the memory that is available.
pub fn limit(memory_mb: Option<u64>) -> u64 {
    match memory_mb {
        Some(megabytes) => megabytes.saturating_mul(1_000_000),
        None => available().unwrap_or(UNKNOWN_MEMORY),
    }
}

/// Returns the available memory in bytes, if the system reports it.
fn available() -> Option<u64> {
    linux_bytes("/proc/meminfo", "MemAvailable:")
}

/// Reads a number of bytes from a file of Linux's `/proc`, if it exists.
pub fn linux_bytes(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(bins: &[usize]) -> Schema {
        let column = |(i, bins): (usize, &usize)| {
            format!(r#"{{"name":"c{i}","kind":"numeric","min":0,"max":1,"bins":{bins}}}"#)
        };
        let columns: Vec<String> = bins.iter().enumerate().map(column).collect();
        let json = format!(r#"{{"name":"t","columns":[{}]}}"#, columns.join(","));
        Schema::from_json("t", json.as_bytes()).unwrap()
    }

    fn local(schema: &Schema, model_bytes: usize, limit: u64) -> Result<u64, String> {
        let bytes = |domain: &Domain| Ok(local_bytes(domain, 1000, model_bytes));
        check(schema, limit, bytes).map_err(|error| error.to_string())
    }

    #[test]
    fn too_large_schema_is_rejected_with_sufficient_advice() {
        let mut bins = vec![390; 200];
        bins[7] = 400;
        let limit = 2_000_000_000;
        let refused = local(&schema(&bins), 64 << 20, limit).unwrap_err();
        let advice =
            "coarsen column \"c7\" from 400 to 60 values, and 199 more columns in the same way";
        assert!(refused.ends_with(advice), "{refused}");
        assert!(refused.contains("2000 MB"), "{refused}");
        assert!(local(&schema(&[60; 200]), 64 << 20, limit).is_ok());
        let refused = local(&schema(&[61; 200]), 64 << 20, limit).unwrap_err();
        let advice =
            "coarsen column \"c0\" from 61 to 60 values, and 199 more columns in the same way";
        assert!(refused.ends_with(advice), "{refused}");
    }

    #[test]
    fn too_large_model_is_rejected_without_naming_a_column() {
        let refused = local(&schema(&[5; 3]), 1 << 32, 1 << 30).unwrap_err();
        assert!(refused.contains("--model-mb"), "{refused}");
    }

    #[test]
    fn error_gets_coarsening_advice_only_if_coarsening_helps() {
        let small_alone = |domain: &Domain| match domain.columns() {
            0..100 => Ok(1),
            _ => Err(Error::Usage("too wide".to_owned())),
        };
        let refused = check(&schema(&[80, 40]), 1, small_alone).unwrap_err();
        let says = "too wide: coarsen column \"c0\" from 80 to 59 values";
        assert_eq!(refused.to_string(), says);
        let never = |_: &Domain| Err(Error::Usage("no".to_owned()));
        let refused = check(&schema(&[80, 40]), 1, never).unwrap_err();
        assert_eq!(refused.to_string(), "no");
    }
}
