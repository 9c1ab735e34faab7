//! Tests that the services can read the configurations in `infra/config/`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fhaim_api::token::Service;
use fhaim_platform::config::{Common, load};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

fn sample(service: Service) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra/config");
    folder.join(format!("{service}.toml"))
}

/// Reads a sample, and checks that an additional field is rejected.
fn read<T: DeserializeOwned>(service: Service) -> T {
    let path = sample(service);
    let config = load(service.as_str(), Some(&path)).unwrap_or_else(|error| panic!("{error}"));
    let folder = TempDir::new().unwrap();
    let wrong = folder.path().join("wrong.toml");
    let text = fs::read_to_string(path).unwrap();
    for place in ["[common]\n", "[common.sealing]\n"] {
        fs::write(
            &wrong,
            text.replace(place, &format!("{place}nonsense = 1\n")),
        )
        .unwrap();
        assert!(
            matches!(
                load::<T>(service.as_str(), Some(&wrong)),
                Err(fhaim_platform::config::ConfigError::Fields { .. })
            ),
            "{place}"
        );
    }
    config
}

/// Checks that a sample contains no secret, and that the peers' addresses are those on which the peers listen.
fn check(service: Service, common: &Common, peers: &[(Service, &str)]) {
    assert!(common.sealing.file.is_none() && common.sealing.variable.is_some());
    let (_, address) = common.database.url.split_once("://").unwrap();
    assert_eq!(address, format!("{service}@postgres/{service}"));
    let named = common.peers.iter().map(|(&peer, url)| (peer, url.as_str()));
    assert_eq!(named.collect::<Vec<_>>(), peers);
}

#[test]
fn sample_configurations_are_valid() {
    let generation: fhaim_generation::Config = read(Service::Generation);
    let computation: fhaim_computation::Config = read(Service::Computation);
    let crypto: fhaim_crypto::Config = read(Service::Crypto);
    let witness: fhaim_computation::Config = read(Service::Witness);
    let at = |service: Service, common: &Common| (service, common.listen.port());
    let [(g, g_port), (c, c_port), (k, k_port)] = [
        at(Service::Generation, &generation.common),
        at(Service::Computation, &computation.common),
        at(Service::Crypto, &crypto.common),
    ];
    let [g_url, c_url, k_url] =
        [(g, g_port), (c, c_port), (k, k_port)].map(|(s, port)| format!("http://{s}:{port}"));
    // A deletion that the owner's program left is continued at both.
    check(g, &generation.common, &[(c, &c_url), (k, &k_url)]);
    check(c, &computation.common, &[(g, &g_url), (k, &k_url)]);
    check(k, &crypto.common, &[(g, &g_url), (c, &c_url)]);
    let (w, common) = (Service::Witness, &witness.common);
    check(w, common, &[(g, &g_url), (c, &c_url), (k, &k_url)]);
}
