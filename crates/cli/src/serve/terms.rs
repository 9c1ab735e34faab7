//! Terms that an earlier release stored, brought up to date when a service starts.
//!
//! Key service and computation service know no mechanism, so they cannot say what noise one needs;
//! this program knows them all.

use fhaim_api::token::Service;
use fhaim_platform::Failure;
use fhaim_platform::base::Base;
use fhaim_protocol::terms::Terms;
use fhaim_synth::Mechanisms;

/// Completes the terms of every dataset that a service keeps.
pub async fn complete(service: Service, base: &Base) -> Result<(), Failure> {
    let (table, key) = match service {
        Service::Generation => ("datasets", "id"),
        Service::Computation | Service::Witness => ("uploads", "dataset"),
        Service::Crypto | Service::Keyshare1 | Service::Keyshare2 => ("key_sets", "dataset"),
    };
    let changed = base.store.rewrite(table, key, "terms", completed).await?;
    if changed > 0 {
        tracing::info!(%service, changed, "terms of an earlier release completed");
    }
    Ok(())
}

/// The terms with what their mechanism needs; nothing where they have it. Terms that cannot be
/// completed stay as they are: their dataset is refused when it is used, and no other is.
fn completed(text: &str) -> Result<Option<String>, Failure> {
    let terms: Terms = serde_json::from_str(text)?;
    if terms.need.is_some() {
        return Ok(None);
    }
    match terms.complete(&Mechanisms) {
        Ok(terms) => Ok(Some(serde_json::to_string(&terms)?)),
        Err(error) => {
            tracing::warn!(%error, "terms of an earlier release cannot be completed");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_of_the_first_version_are_completed_once() {
        let first = r#"{"schema":{"name":"t","columns":[
            {"name":"a","kind":"categorical","categories":["x","y"]},
            {"name":"b","kind":"categorical","categories":["x","y"]}]},
            "epsilon":1.0,"delta":1e-9,"mechanism":"fhaim-l2","record_bound":100,"runs":2,
            "model_bytes":64000000,"target_weight":1}"#;
        let text = completed(first).unwrap().unwrap();
        let terms: Terms = serde_json::from_str(&text).unwrap();
        assert!(terms.plan().is_ok());
        assert!(terms.need.is_some_and(|need| need.squares));
        assert_eq!(completed(&text).unwrap(), None);
        // One dataset that cannot be completed keeps no service from starting.
        let unknown = first.replace("fhaim-l2", "of-a-later-release");
        assert_eq!(completed(&unknown).unwrap(), None);
    }
}
