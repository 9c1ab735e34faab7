//! Searches data for many byte strings at once.

use std::collections::BTreeSet;

/// Byte strings to search for, indexed by their first two bytes.
pub(super) struct Needles<'a> {
    /// Number of distinct byte strings.
    pub count: usize,
    starts: Vec<BTreeSet<&'a [u8]>>,
}

impl<'a> Needles<'a> {
    pub fn new(needles: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut starts = vec![BTreeSet::new(); 1 << 16];
        for needle in needles {
            starts[Self::start(needle)].insert(needle);
        }
        let count = starts.iter().map(BTreeSet::len).sum();
        Self { count, starts }
    }

    fn start(bytes: &[u8]) -> usize {
        usize::from(bytes[0]) << 8 | usize::from(bytes[1])
    }

    /// Returns the first byte string that occurs in `bytes`.
    pub fn find(&self, bytes: &[u8]) -> Option<&'a [u8]> {
        (0..bytes.len().saturating_sub(1)).find_map(|at| {
            let rest = &bytes[at..];
            let mut here = self.starts[Self::start(rest)].iter().copied();
            here.find(|needle| rest.starts_with(needle))
        })
    }
}

#[test]
fn needles_are_found_at_any_position() {
    let needles = Needles::new([&b"abc"[..], b"abd", b"zz"].into_iter());
    assert_eq!(needles.count, 3);
    for (hay, found) in [
        (&b"abd"[..], Some(&b"abd"[..])),
        (b"ababc", Some(b"abc")),
        (b"yzyz", None),
        (b"yzz", Some(b"zz")),
        (b"ab", None),
        (b"", None),
    ] {
        assert_eq!(needles.find(hay), found, "{hay:?}");
    }
}
