//! Zero-concentrated differential privacy: accounting, exact samplers, the noise ladder.
