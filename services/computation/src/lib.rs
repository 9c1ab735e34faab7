//! The computation entity as a service.
