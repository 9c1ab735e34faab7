//! Tasks of a batch: decoded tasks encode to the same bytes, and can be run.

#![no_main]

use std::sync::LazyLock;

use fhaim_fuzz::{TILES, choice, edited, mend_checksum};
use fhaim_he::TileTask;
use libfuzzer_sys::fuzz_target;

static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let task = TILES.tasks.first().expect("a batch with cells has a task");
    let bytes = task.to_bytes(TILES.params());
    bytes.expect("a small task's numbers fit 32 bits")
});

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let mut bytes = edited(&VALID, data);
    if how & 1 == 0 {
        mend_checksum(&mut bytes);
    }
    let params = TILES.params();
    if let Ok(task) = TileTask::from_bytes(params, &bytes) {
        assert!(task.to_bytes(params).is_ok_and(|again| again == bytes));
        let chunks = task.layout().chunks();
        assert!(!task.band().is_empty() && task.band().end <= chunks);
        assert!(task.residue() < params.residues() && task.tiles().count() > 0);
        if how & 2 == 0 {
            // A task that names columns or record chunks that the table does not have is rejected.
            let _ = TILES.run(&task);
        }
    }
});
