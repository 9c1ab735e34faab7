//! The crypto-service entity as a service.
