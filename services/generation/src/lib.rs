//! The generation entity as a service.
