//! Results of tiles: decoded results encode to the same bytes, and sums add up or are rejected.

#![no_main]

use std::sync::LazyLock;

use fhaim_fuzz::{TILES, choice, edited, mend_checksum};
use fhaim_he::Partial;
use libfuzzer_sys::fuzz_target;

/// Sums over one of two record chunks, and a packed tile.
static VALID: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let first = TILES.tasks.first().expect("a batch with cells has a task");
    let encoded = |partials: Vec<Partial>| {
        let partial = partials.first().expect("a task has a tile");
        partial.to_bytes().expect("its numbers fit 32 bits")
    };
    let sums = TILES.run(first).expect("the task is the table's");
    let whole = TILES.run_all().expect("the tasks are the table's");
    assert!(matches!(sums.first(), Some(Partial::Sums(_))));
    assert!(matches!(whole.first(), Some(Partial::Root(_))));
    [encoded(sums), encoded(whole)]
});

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let how = choice(&mut data);
    let valid = &VALID[usize::from(how & 1)];
    let mut bytes = edited(valid, data);
    if how & 2 == 0 {
        mend_checksum(&mut bytes);
    }
    let params = TILES.params();
    if let Ok(partial) = Partial::from_bytes(params, &bytes) {
        assert!(partial.to_bytes().is_ok_and(|again| again == bytes));
        if let Partial::Sums(mut sums) = partial {
            // Sums over the same record chunks are rejected. Sums over no chunk change nothing.
            let twice = sums.clone();
            let empty = sums.add(&twice).is_ok();
            assert!(!empty || !sums.is_whole());
        }
    }
});
