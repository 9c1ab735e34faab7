//! What a run will need, before it starts: refused with the reason and the column to coarsen when
//! it is too much.

use fhaim_domain::{Domain, Schema, pair_cells};
use fhaim_he::WIDE;

use crate::error::Error;

/// Assumed free where the system does not say: 2 GiB.
const UNKNOWN_MEMORY: u64 = 2 << 30;

/// Most records of a table: as many as any parameters are for.
pub const MAX_RECORDS: usize = WIDE.max_records as usize;

/// Bytes of a value that was read: its codes, and a copy's.
const CODE_BYTES: u64 = 16;

/// Bytes of one cell of a marginal.
const CELL_BYTES: u64 = 8;

/// Tables over all pairs of columns held at once: the probe's answers, their projections, and
/// the model's marginals.
const PAIR_TABLES: u64 = 3;

/// Bytes of a run in the clear over `domain`: tables over all pairs, the records and their
/// synthetic copy, a model with its messages and gradient.
pub fn local_bytes(domain: &Domain, records: usize, model_bytes: usize) -> u64 {
    let codes = (records * domain.len() * size_of::<u32>()) as u64;
    pair_cells(domain)
        .saturating_mul(CELL_BYTES * PAIR_TABLES)
        .saturating_add(2 * codes)
        .saturating_add((model_bytes as u64).saturating_mul(4))
}

/// The bytes that `bytes` says the schema's domain needs, if they are within `limit`. Otherwise
/// the refusal says how far its widest columns would have to be coarsened.
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
            "this needs about {} MB of memory where {} MB may be used",
            megabytes(needed),
            megabytes(limit)
        ),
        // No size at all: the refusal stands if coarsening does not help.
        Err(error) => match most_values(schema.domain(), fits) {
            Some(_) => error.to_string(),
            None => return Err(error),
        },
    };
    let advice = match most_values(schema.domain(), fits) {
        Some(most) => coarsen(schema, most),
        None => "use a machine with more memory, fewer columns or a smaller --model-mb".to_owned(),
    };
    Err(Error::TooLarge { reason, advice })
}

/// The largest number of values to cut every column down to for the domain to fit, if any does.
fn most_values(domain: &Domain, fits: impl Fn(&Domain) -> bool) -> Option<usize> {
    let capped = |most: usize| {
        let sizes = domain.sizes().iter().map(|&size| size.min(most));
        Domain::new(sizes.collect())
    };
    let (mut low, mut high) = (2, domain.sizes().iter().copied().max()?);
    if !fits(&capped(low)) {
        return None;
    }
    // `low` fits, and `high` does not unless the two meet.
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

/// Names the widest of the columns with more than `most` values.
fn coarsen(schema: &Schema, most: usize) -> String {
    let columns = schema.columns();
    let wide = || columns.iter().filter(|column| column.size() > most);
    // Of columns as wide the first: `max_by_key` would name the last.
    let Some(widest) = wide().rev().max_by_key(|column| column.size()) else {
        return "use a machine with more memory".to_owned();
    };
    let others = match wide().count() - 1 {
        0 => String::new(),
        1 => ", and one more column likewise".to_owned(),
        count => format!(", and {count} more columns likewise"),
    };
    format!(
        "coarsen column {:?} from {} to {most} values{others}",
        widest.name(),
        widest.size()
    )
}

/// Bytes as MB, rounded up.
pub fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

/// Records of so many columns that memory holds, as read and as what is made of them, and never less
/// than 2^22.
pub fn most_records(columns: usize) -> usize {
    let bytes = CODE_BYTES.saturating_mul(columns.max(1) as u64);
    let most = usize::try_from(limit(None) / bytes).unwrap_or(usize::MAX);
    most.clamp(1 << 22, MAX_RECORDS)
}

/// Refuses more records to draw than memory holds ([`most_records`]); `flag` is what asks for fewer.
pub fn check_drawn(records: usize, columns: usize, flag: &str) -> Result<(), Error> {
    let most = most_records(columns);
    if records > most {
        return Err(Error::Usage(format!(
            "{records} records of {columns} columns are more than memory holds: at most {most} ({flag})"
        )));
    }
    Ok(())
}

/// Bytes that may be used: as asked for, or what the system has available.
pub fn limit(memory_mb: Option<u64>) -> u64 {
    match memory_mb {
        Some(megabytes) => megabytes.saturating_mul(1_000_000),
        None => available().unwrap_or(UNKNOWN_MEMORY),
    }
}

/// Available memory.
fn available() -> Option<u64> {
    linux_bytes("/proc/meminfo", "MemAvailable:")
}

/// A number of bytes by Linux's account, where there is one.
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
    fn too_large_a_schema_names_the_widest_column_and_the_advice_suffices() {
        let mut bins = vec![390; 200];
        bins[7] = 400;
        let limit = 2_000_000_000;
        let refused = local(&schema(&bins), 64 << 20, limit).unwrap_err();
        let advice = "coarsen column \"c7\" from 400 to 60 values, and 199 more columns likewise";
        assert!(refused.ends_with(advice), "{refused}");
        assert!(refused.contains("2000 MB"), "{refused}");
        assert!(local(&schema(&[60; 200]), 64 << 20, limit).is_ok());
        let refused = local(&schema(&[61; 200]), 64 << 20, limit).unwrap_err();
        let advice = "coarsen column \"c0\" from 61 to 60 values, and 199 more columns likewise";
        assert!(refused.ends_with(advice), "{refused}");
    }

    #[test]
    fn too_large_a_model_is_not_blamed_on_a_column() {
        let refused = local(&schema(&[5; 3]), 1 << 32, 1 << 30).unwrap_err();
        assert!(refused.contains("--model-mb"), "{refused}");
    }

    #[test]
    fn a_refusal_that_coarsening_cures_says_so_and_any_other_stands() {
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
