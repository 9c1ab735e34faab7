//! Memory that a service has freed.
//!
//! The allocator of glibc has a heap for each of many threads, and keeps the freed memory of all of them: after a burst
//! of requests, a service would stay as large as it was at its largest. The functions do nothing with other allocators.

/// Makes blocks of at least a mebibyte return to the system when they are freed, and lets each heap keep at most 8 MiB of
/// freed memory at its end, which `release` cannot return. By default, both limits grow with the largest block that
/// was freed. A service calls it when it starts.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` only sets limits of later calls of the allocator, and takes its lock (mallopt(3)).
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 8 << 20);
    }
}

/// Returns freed memory to the system.
pub(crate) fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time from any thread (malloc_trim(3), "Attributes").
    unsafe {
        libc::malloc_trim(0);
    }
}
