//! Functions that this program shares with `fhaim`, by purpose.

/// Reading of schemas, tables and models.
pub mod input {
    use std::{path::Path, sync::Arc};

    use fhaim_cli::shared::{read_model, read_schema, read_table};
    use fhaim_domain::{Schema, Table};
    use fhaim_files::{FormatArguments, StrictnessArguments};
    use fhaim_synth::FittedModel;

    pub use fhaim_cli::shared::remark_on_constraints;
    pub use fhaim_files::data::{Data, delimiter, open, refuse_pipe};

    use crate::error::Error;

    /// Reads a schema.
    pub fn schema(path: &Path) -> Result<Schema, Error> {
        Ok(read_schema(path)?)
    }

    /// Reads a table, and reports changed or skipped values on standard error.
    pub fn table(
        data: impl Into<Data>,
        schema: Schema,
        format: &FormatArguments,
        strictness: &StrictnessArguments,
    ) -> Result<Table, Error> {
        Ok(read_table(data, schema, format, strictness)?)
    }

    /// Reads a model and checks it against a schema.
    pub fn model(
        path: &Path,
        most_mb: usize,
        schema: &Schema,
    ) -> Result<Arc<dyn FittedModel>, Error> {
        Ok(read_model(path, most_mb, schema)?)
    }
}

/// Writing of files and standard output.
pub mod output {
    pub use fhaim_files::{Existing, StagedFile, check_distinct, commit_all, rename_all};
    use serde::Serialize;

    use crate::error::Error;

    /// Prints a text to standard output, or to standard error if a result goes to standard output.
    pub fn print(text: &str) -> Result<(), Error> {
        Ok(fhaim_files::print(text)?)
    }

    /// Prints a value to standard output as indented JSON.
    pub fn print_json(value: &impl Serialize) -> Result<(), Error> {
        print(&to_json(value)?)
    }

    /// Returns a value as indented JSON that ends with a newline.
    pub fn to_json(value: &impl Serialize) -> Result<String, Error> {
        Ok(fhaim_cli::shared::to_json(value)?)
    }
}

/// Random generators, and the seeds of tests.
pub mod randomness {
    pub use fhaim_cli::{
        InsecureTestSeed, Randomness,
        shared::{Drawing, Purpose, generator, system},
    };
}

/// Memory limits and CPU times.
pub mod size {
    pub use fhaim_cli::shared::{check_drawn, limit, linux_bytes, megabytes, most_records};

    /// Returns the CPU time of all threads of a process so far, user and system, in seconds. `stat` is its `/proc`
    /// file.
    pub fn cpu_seconds(stat: &str) -> Option<f64> {
        /// Linux reports CPU times in hundredths of a second on every architecture.
        const TICKS: f64 = 100.0;
        let text = std::fs::read_to_string(stat).ok()?;
        // The third field follows the name in brackets. User and system time are the 14th and 15th.
        let (_, rest) = text.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(11);
        let [user, system]: [f64; 2] = [fields.next()?.parse().ok()?, fields.next()?.parse().ok()?];
        Some((user + system) / TICKS)
    }
}
