//! The connection to the page's worker: three imports and two exports, without generated glue.
//!
//! The worker writes a request into memory from [`fhaim_alloc`] and calls [`fhaim_call`]. The call
//! reads the bytes that belong to the request through `read`, and passes the answer to `reply`
//! before it returns.

use std::cell::RefCell;
use std::io;

use crate::error::Told;
use crate::{Reply, TableSession};

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Copies at most `len` further bytes of the input to `to`. Returns their number (0 at the
    /// end), or a negative number if they cannot be read.
    fn read(to: *mut u8, len: usize) -> i32;
    /// Fills `len` bytes at `to` with `crypto.getRandomValues`.
    fn random(to: *mut u8, len: usize);
    /// Receives the answer: kind 0 is JSON, 1 bytes, 2 an error as JSON, 3 the place of a panic.
    fn reply(kind: u32, from: *const u8, len: usize);
}

/// Maximum length of a single read.
const MAX_READ: usize = 1 << 20;

struct Input;

impl io::Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(MAX_READ);
        // SAFETY: the host writes at most `len` bytes, all inside `buffer`.
        let count = unsafe { read(buffer.as_mut_ptr(), len) };
        match usize::try_from(count) {
            Ok(count) if count <= len => Ok(count),
            _ => Err(io::Error::other("the browser can no longer read the file")),
        }
    }
}

/// Source of randomness for getrandom: the browser's generator.
///
/// # Safety
/// `dest` must be valid for writes of `len` bytes, as getrandom promises.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    dest: *mut u8,
    len: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: the host writes `len` bytes to `dest`, which the caller promises to be writable.
    unsafe { random(dest, len) };
    Ok(())
}

thread_local! {
    static SESSION: RefCell<TableSession> = RefCell::default();
}

/// Allocates a request of `len` bytes. [`fhaim_call`] frees it.
#[unsafe(no_mangle)]
pub extern "C" fn fhaim_alloc(len: usize) -> *mut u8 {
    Box::into_raw(vec![0u8; len].into_boxed_slice()).cast()
}

/// Answers the request at `from`.
///
/// # Safety
/// `from` and `len` are those of one call of [`fhaim_alloc`], not used before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fhaim_call(from: *mut u8, len: usize) {
    // SAFETY: the caller promises that this is the box that `fhaim_alloc` released.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(from, len)) };
    std::panic::set_hook(Box::new(tell_panic));
    let answer = SESSION.with_borrow_mut(|session| session.answer(&request, Input));
    let (kind, bytes) = match answer {
        Ok(Reply::Json(text)) => (0, text.into_bytes()),
        Ok(Reply::Bytes(bytes)) => (1, bytes),
        Err(error) => (
            2,
            serde_json::to_vec(&Told::from(&error)).unwrap_or_default(),
        ),
    };
    // SAFETY: the host only reads the bytes, which live until it returns.
    unsafe { reply(kind, bytes.as_ptr(), bytes.len()) };
}

/// Reports a defect before the module ends. The page gets only its place in the code, and nothing
/// of the table.
fn tell_panic(info: &std::panic::PanicHookInfo<'_>) {
    let place = info.location().map_or(String::new(), ToString::to_string);
    // SAFETY: the host only reads the bytes, which live until it returns.
    unsafe { reply(3, place.as_ptr(), place.len()) };
}
