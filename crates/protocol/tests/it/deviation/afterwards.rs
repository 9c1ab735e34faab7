//! Tests that the holder who kept its ladder's key detects deviations afterwards.

use super::*;

#[test]
fn honest_computation_shows_no_differences() {
    let mut setting = Setting::new(false);
    let objects = setting.objects();
    let request = setting.request(&objects);
    let released = setting.crypto.decrypt(&request).unwrap();
    assert_eq!(setting.found(&released), [None; 3]);
    let bare = exact(&setting.table, &requests()[1].statistic).unwrap();
    assert_ne!(released[1], bare);
}

/// Without noise the key service would release exact counts.
#[test]
fn missing_noise_is_detected() {
    let mut setting = Setting::new(false);
    let objects = setting.objects();
    let bare = without_noise(&mut setting, &objects);
    let request = setting.request(&bare);
    let released = setting.crypto.decrypt(&request).unwrap();
    for (request, released) in requests().iter().zip(&released) {
        let bare = exact(&setting.table, &request.statistic).unwrap();
        assert_eq!(*released, bare);
    }
    assert!(setting.found(&released).iter().all(Option::is_some));
}

#[test]
fn cell_changed_by_one_is_detected() {
    let mut setting = Setting::new(false);
    let objects = setting.objects();
    let mut request = setting.request(&objects);
    setting.add(&mut request, &one_more());
    let released = setting.crypto.decrypt(&request).unwrap();
    let found = setting.found(&released);
    assert_eq!((found[0], found[2]), (None, None));
    let Some(Difference::Cells {
        count: 1,
        first: 1,
        expected,
        released,
    }) = found[1]
    else {
        panic!("{found:?}");
    };
    assert_eq!(released, expected + 1);
}

/// The computation service counts another column than the one that was requested and paid for.
#[test]
fn wrong_column_is_detected() {
    let mut setting = Setting::new(false);
    let objects = setting.objects();
    let request = setting.request(&another_column(&objects));
    let released = setting.crypto.decrypt(&request).unwrap();
    let found = setting.found(&released);
    assert_eq!(found[0], None);
    assert!(found[1].is_some() && found[2].is_some(), "{found:?}");
}
