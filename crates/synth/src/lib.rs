//! Select, measure, generate: one engine over plaintext and encrypted sources.
