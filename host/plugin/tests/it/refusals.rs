//! Files that are not plugins are refused with a helpful reason.

use oarlock_plugin::{Component, Engine, EngineConfig, Limits};
use serde_json::json;

use super::support::{Host, engine, guest};

async fn refusal(bytes: impl Into<Vec<u8>>) -> String {
    let bytes: Vec<u8> = bytes.into();
    Component::compile(engine(), bytes).await.unwrap_err().to_string()
}

/// Returns a fixture in which one name is replaced by another of the same length.
fn renamed(name: &str, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = guest(name);
    let places: Vec<_> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, w)| *w == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "{name} does not contain {from}");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

#[tokio::test]
async fn files_that_are_not_components_are_refused() {
    insta::assert_snapshot!(refusal("").await, @"the file is empty: is the build that writes it still running?");
    insta::assert_snapshot!(refusal("#!/bin/sh\nexit 1\n").await, @r#"not WebAssembly: the file does not begin with \0asm (it begins with #!/bin/s)"#);
    insta::assert_snapshot!(refusal("\0asm\u{1}\0\0\0").await, @"a core WebAssembly module, not a component: build for the component model (link with wasm-component-ld, or run `wasm-tools component new` on it)");
    let whole = guest("traps");
    insta::assert_snapshot!(refusal(&whole[..6]).await, @"the component is truncated: the section at byte 0 of 6 exceeds the file; was it copied completely?");
    let half = refusal(&whole[..whole.len() / 2]).await;
    assert!(half.starts_with("the component is truncated"), "{half}");
    // Damages the code in the middle, so that all names are intact.
    let mut broken = whole;
    let middle = broken.len() / 3;
    broken[middle..middle + 64].fill(0xff);
    let broken = refusal(broken).await;
    assert!(broken.starts_with("it does not compile: "), "{broken}");
}

#[tokio::test]
async fn components_that_are_not_plugins_are_refused() {
    insta::assert_snapshot!(refusal(renamed("traps", "oarlock:plugin/", "someone:plugin/")).await, @"not an Oarlock plugin: it lacks `metadata` and `handler` or `reconciler`; it exports `someone:plugin/metadata@0.1.0`, `someone:plugin/handler@0.1.0`. A plugin exports `metadata` and `handler`, `reconciler` or both, of oarlock:plugin@0.1.0");
    insta::assert_snapshot!(refusal(renamed("traps", "plugin/metadata@0.1.0", "plugin/netadata@0.1.0")).await, @"not an Oarlock plugin: it lacks `metadata`; it exports `oarlock:plugin/netadata@0.1.0`, `oarlock:plugin/handler@0.1.0`. A plugin exports `metadata` and `handler`, `reconciler` or both, of oarlock:plugin@0.1.0");
    insta::assert_snapshot!(refusal(renamed("traps", "plugin/handler@0.1.0", "plugin/handled@0.1.0")).await, @"not an Oarlock plugin: it lacks `handler` or `reconciler`; it exports `oarlock:plugin/metadata@0.1.0`, `oarlock:plugin/handled@0.1.0`. A plugin exports `metadata` and `handler`, `reconciler` or both, of oarlock:plugin@0.1.0");
    insta::assert_snapshot!(refusal(renamed("traps", "@0.1.0", "@0.2.0")).await, @"built for oarlock:plugin@0.2.0, this host supports oarlock:plugin@0.1.0: build the plugin again with the wit/ folder of this version (wit/CHANGELOG.md lists the changes)");
    insta::assert_snapshot!(refusal(renamed("makes-mistakes", "oarlock:plugin/metrics@0.1.0", "wasi:sockets/tcp-like@0.2.10")).await, @"it imports `wasi:sockets/tcp-like@0.2.10`, which this host does not provide: a plugin gets the interfaces of the world `plugin`, and of WASI 0.2 cli, clocks, filesystem, io, random and sockets (all empty)");
    insta::assert_snapshot!(refusal(renamed("makes-mistakes", "oarlock:plugin/metrics@0.1.0", "oarlock:plugin/secrets@0.1.0")).await, @"it imports `oarlock:plugin/secrets@0.1.0`, which this host does not provide: a plugin gets the interfaces of the world `plugin`, and of WASI 0.2 cli, clocks, filesystem, io, random and sockets (all empty)");
}

#[tokio::test]
async fn components_with_wrong_types_are_refused() {
    insta::assert_snapshot!(refusal(renamed("traps", "on-synced", "on-sinked")).await, @"it does not match oarlock:plugin@0.1.0: instance export `oarlock:plugin/handler@0.1.0` does not have export `on-synced`; was it built with another version of the wit/ folder?");
    // Types are compared when the first instance is created, which is the instance for describe.
    let component =
        Component::compile(engine(), renamed("traps", "is-in-initial-list", "is-in-initial-lisp"));
    let host = Host::of(component.await.unwrap(), Limits::default(), json!({}));
    insta::assert_snapshot!(host.describe().await.unwrap_err(), @"the plugin did not describe itself: the component does not match the contract: failed to convert function to given type: type mismatch with parameters: expected record field named is-in-initial-list, found is-in-initial-lisp; was it built with another version of the wit/ folder?");
}

#[tokio::test]
async fn too_large_components_are_refused() {
    let bytes = vec![0; oarlock_plugin::component::MAX_COMPONENT_BYTES + 1];
    insta::assert_snapshot!(refusal(bytes).await, @"the component has 67108865 bytes, more than the 67108864 allowed");
}

#[test]
fn a_cache_folder_that_other_users_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let open = |mode: u32| {
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        Engine::new(EngineConfig { cache_dir: Some(dir.path().into()), ..EngineConfig::default() })
    };
    let refused = open(0o777).err().unwrap().to_string();
    let refused = refused.replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(refused, @"cannot use DIR for compiled code: other users may write to it (mode 777): run chmod 700 on it");
    assert!(open(0o700).is_ok());
}
