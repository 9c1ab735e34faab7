//! Memory that a service has freed.

/// Returns freed memory to the system.
///
/// The allocator of glibc has a heap for each of many threads, and keeps the freed memory of all of them: after a burst
/// of requests, a service would stay as large as it was at its largest. This function does nothing with other allocators.
pub fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time from any thread (malloc_trim(3), "Attributes").
    unsafe {
        libc::malloc_trim(0);
    }
}
