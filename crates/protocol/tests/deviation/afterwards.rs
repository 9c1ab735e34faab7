//! Found out afterwards, by the holder who kept its ladder's key.

use super::*;

#[test]
fn an_honest_computation_is_found_to_be_one() {
    let mut setting = Setting::new(false);
    let objects = setting.objects();
    let request = setting.request(&objects);
    let released = setting.crypto.decrypt(&request).unwrap();
    assert_eq!(setting.found(&released), [None; 3]);
    let bare = exact(&setting.table, &requests()[1].statistic).unwrap();
    assert_ne!(released[1], bare);
}

/// Without noise the key service would hand out exact counts.
#[test]
fn noise_left_out_is_found() {
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
fn a_cell_changed_by_one_is_found() {
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

/// Counting another column than was asked for, and paid.
#[test]
fn another_columns_ciphertext_is_found() {
    let mut setting = Setting::new(false);
    let objects = setting.objects();
    let request = setting.request(&another_column(&objects));
    let released = setting.crypto.decrypt(&request).unwrap();
    let found = setting.found(&released);
    assert_eq!(found[0], None);
    assert!(found[1].is_some() && found[2].is_some(), "{found:?}");
}
