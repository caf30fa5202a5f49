//! `oarlock plugin push`: publishes a component in a registry.

use std::{collections::BTreeMap, io::Write};

use anyhow::anyhow;
use oarlock_component_source::{Artifact, Digest, Publisher};
use oarlock_controller::regular_file;
use oarlock_plugin::{EngineConfig, component::MAX_COMPONENT_BYTES};

use super::{check::Subject, registry};
use crate::{
    args::{Environment, PushArgs},
    commands::examine::Examined,
    failure::{Ended, Failure},
};

/// Checks a component as a host does, pushes it, and prints the reference with the digest.
pub(super) async fn run(args: PushArgs, environment: &Environment, engine: EngineConfig) -> Ended {
    let PushArgs { reference, file, created, registry } = args;
    let registry = registry::Registry::open(&reference, &registry, environment)?;
    let keyring = registry.keyring()?;
    let subject = Subject::examine(&file, false, engine).await?;
    let path = &subject.component;
    let component = regular_file::read(path, MAX_COMPONENT_BYTES as u64)
        .map_err(|error| Failure::caller(anyhow::Error::new(error).context(path.display().to_string())))?;
    if Digest::of(&component).to_hex() != subject.examined.component.digest().to_string() {
        return Err(Failure::running(anyhow!("{} changed while it was checked", path.display()))
            .hint("wait until its build has ended"));
    }
    let created = jiff::Timestamp::from_second(created).map_err(|error| {
        Failure::caller(anyhow::Error::new(error).context("--created is no time"))
            .hint("give seconds since 1970, such as `git log -1 --format=%ct` prints")
    })?;
    let artifact = Artifact {
        component: component.into(),
        created: created.to_string(),
        imports: subject.examined.component.imports().to_vec(),
        exports: exports(&subject.examined),
        annotations: annotations(&subject.examined),
    };
    let policy = registry.policy();
    let publisher = tokio::task::spawn_blocking(move || Publisher::new(policy)).await;
    let publisher = publisher.map_err(Failure::running)?.map_err(registry::failure)?;
    let pushed =
        publisher.push(registry.reference(), &keyring, &artifact).await.map_err(registry::failure)?;
    let text = format!("{}@{}\n", registry.reference(), pushed.manifest);
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)
}

fn exports(examined: &Examined) -> Vec<String> {
    let component = &examined.component;
    let interfaces = [
        ("metadata", true),
        ("handler", component.exports_handler()),
        ("reconciler", component.exports_reconciler()),
    ];
    let version = examined.contract_version();
    let exported = interfaces.into_iter().filter(|(_, is_exported)| *is_exported);
    exported.map(|(name, _)| format!("oarlock:plugin/{name}@{version}")).collect()
}

fn annotations(examined: &Examined) -> BTreeMap<String, String> {
    let description = &examined.description;
    let annotations = [
        ("org.opencontainers.image.title", description.name.clone()),
        ("org.opencontainers.image.version", description.version.clone()),
        ("dev.oarlock.world", examined.world().to_owned()),
        ("dev.oarlock.contract", examined.contract_version().to_owned()),
    ];
    annotations.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
