//! What a run will need, before it starts: refused with the reason and the column to coarsen when
//! it is too much.

use fhaim_domain::{Schema, check_schema};

use crate::error::Error;

/// Assumed free where the system does not say: 2 GiB.
const UNKNOWN_MEMORY: u64 = 2 << 30;

/// Bytes of one cell of a marginal.
const CELL_BYTES: u64 = 8;

/// Tables over all pairs of columns held at once: the probe's answers, their projections, and
/// the model's marginals.
const PAIR_TABLES: u64 = 3;

/// What is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// For tables over all pairs of columns.
    pub pairs: u64,
    /// For everything else.
    pub other: u64,
}

impl Need {
    /// To run a mechanism in the clear.
    pub fn local(schema: &Schema, records: usize, model_bytes: usize) -> Self {
        let cells = check_schema(schema, None).pair_cells;
        let codes = (records * schema.columns().len() * size_of::<u32>()) as u64;
        Self {
            pairs: cells.saturating_mul(CELL_BYTES * PAIR_TABLES),
            // The table, its synthetic copy, and a model with its messages and gradient.
            other: 2 * codes + 4 * model_bytes as u64,
        }
    }

    /// All of it.
    pub fn bytes(&self) -> u64 {
        self.pairs.saturating_add(self.other)
    }

    /// Refuses what does not fit `limit` bytes, naming the columns to coarsen.
    pub fn check(&self, schema: &Schema, limit: u64) -> Result<(), Error> {
        if self.bytes() <= limit {
            return Ok(());
        }
        let for_pairs = limit.saturating_sub(self.other);
        let cells = for_pairs / (CELL_BYTES * PAIR_TABLES);
        let suggestions = check_schema(schema, Some(cells)).suggestions;
        let advice = match suggestions.first() {
            Some(widest) if for_pairs > 0 => format!(
                "coarsen column {:?} from {} to {} values{}",
                widest.column,
                widest.from,
                widest.to,
                others(suggestions.len() - 1)
            ),
            _ => "use a machine with more memory or a smaller --model-mb".to_owned(),
        };
        Err(Error::TooLarge {
            needed: megabytes(self.bytes()),
            limit: megabytes(limit),
            advice,
        })
    }
}

fn others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => ", and one more (see fhaim schema check)".to_owned(),
        count => format!(", and {count} more (see fhaim schema check)"),
    }
}

/// Bytes as MB, rounded up.
pub fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1_000_000)
}

/// Bytes that may be used: as asked for, or what the system has available.
pub fn limit(memory_mb: Option<u64>) -> u64 {
    match memory_mb {
        Some(megabytes) => megabytes.saturating_mul(1_000_000),
        None => available().unwrap_or(UNKNOWN_MEMORY),
    }
}

/// Available memory by Linux's account.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(columns: usize, bins: usize) -> Schema {
        let column =
            |i| format!(r#"{{"name":"c{i}","kind":"numeric","min":0,"max":1,"bins":{bins}}}"#);
        let columns: Vec<String> = (0..columns).map(column).collect();
        let json = format!(r#"{{"name":"t","columns":[{}]}}"#, columns.join(","));
        Schema::from_json("t", json.as_bytes()).unwrap()
    }

    #[test]
    fn too_large_a_schema_names_a_column_and_the_advice_suffices() {
        let wide = schema(200, 400);
        let need = Need::local(&wide, 1000, 64 << 20);
        let limit = 2_000_000_000;
        let refused = need.check(&wide, limit).unwrap_err().to_string();
        assert!(refused.contains("coarsen column \"c"), "{refused}");
        assert!(refused.contains("2000 MB"), "{refused}");

        let fits = schema(200, 50);
        assert!(
            Need::local(&fits, 1000, 64 << 20)
                .check(&fits, limit)
                .is_ok()
        );
    }

    #[test]
    fn too_large_a_model_is_not_blamed_on_a_column() {
        let small = schema(3, 5);
        let need = Need::local(&small, 1000, 1 << 32);
        let refused = need.check(&small, 1 << 30).unwrap_err().to_string();
        assert!(refused.contains("--model-mb"), "{refused}");
    }
}
