//! Code that the research program `fhaim-lab` shares with `fhaim`: flags, input and output, randomness, and memory
//! limits.
//!
//! It is not meant for other programs. Both programs record privacy costs in [`fhaim_files::memory`].

pub use crate::{
    bench::{BenchRow as ComputeRow, lines as compute_lines, measure as measure_compute},
    division::HolderUpload,
    failed,
    flags::{DEFAULT_DELTA, VERSION, count, mechanism},
    input::{
        model as read_model, remark_on_constraints, schema as read_schema, table as read_table,
    },
    output::to_json,
    randomness::{Drawing, OperatingSystem, Purpose, generator, system},
    serve::runtime,
    size::{check_drawn, limit, linux_bytes, megabytes, most_records},
    usage,
};
