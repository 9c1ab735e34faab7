//! Exact encrypted statistics: parameters, keys, tensor, packing, release.
