//! Artifacts of registries.

use super::{Fetched, Fetcher, Shared, Verified};
use crate::{
    digest::Digest,
    error::{Error, Reason},
    file::too_large,
    records::{Record, RecordKey},
    reference::Reference,
    referenced::ReadReferenced,
    registry::{Keyring, Place},
    signature::{self, Evidence},
    source::OciSource,
};

/// For how many signatures an error says why they do not count.
const MAX_REFUSALS: usize = 3;

impl Fetcher {
    pub(super) async fn oci(
        &self,
        source: &OciSource,
        referenced: &dyn ReadReferenced,
    ) -> Result<Fetched, Error> {
        let reference: Reference = source.reference.parse()?;
        let name = reference.name();
        self.shared.policy.check_allowed(&name)?;
        let secret = match &source.pull_secret_name {
            None => Vec::new(),
            Some(secret) => {
                let read = referenced.pull_secret(secret).await;
                read.map_err(|error| error.of(&format!("pull secret {secret}")))?
            }
        };
        let keyring = match &source.pull_secret_name {
            None => Keyring::default(),
            Some(name) => {
                Keyring::parse(&secret).map_err(|error| error.context(format_args!("pull secret {name}")))?
            }
        };
        let key = RecordKey::new(&reference.to_string(), &secret);
        if reference.digest().is_some()
            && let Some(last) = self.last(&key, &name).await
        {
            return Ok(last.fetched);
        }
        let ask = Box::pin(self.ask_registries(&reference, &keyring, &key, referenced.tenant()));
        self.or_last(&key, &name, ask).await
    }

    /// Asks the mirrors and the registry, until one of them has the artifact.
    async fn ask_registries(
        &self,
        reference: &Reference,
        keyring: &Keyring,
        key: &RecordKey,
        tenant: &str,
    ) -> Result<Fetched, Error> {
        let places = self.shared.registry.places(reference, keyring)?;
        let mut result = Err(Error::new(Reason::Invalid, format!("{reference} has no registry")));
        for place in &places {
            result = self.ask_registry(reference, place, key, tenant).await;
            match &result {
                // Another place cannot help.
                Err(error) if matches!(error.reason(), Reason::Cache | Reason::TooLarge) => break,
                Err(error) => tracing::debug!("{reference} was not fetched from {}: {error}", place.host()),
                Ok(_) => break,
            }
        }
        result
    }

    async fn ask_registry(
        &self,
        reference: &Reference,
        place: &Place,
        key: &RecordKey,
        tenant: &str,
    ) -> Result<Fetched, Error> {
        let name = reference.name();
        if let (None, Some(last)) = (reference.digest(), self.last(key, &name).await) {
            let digest = self.shared.registry.digest(place, &reference.manifest()).await?;
            if digest.is_some() && digest == last.manifest {
                return Ok(last.fetched);
            }
        }
        let registry = &self.shared.registry;
        let (resolved, manifest) = registry.manifest(place, &reference.manifest()).await?;
        let manifest = match manifest.of_index()? {
            None => manifest,
            Some(entry) => registry.manifest(place, &entry.digest()?.to_string()).await?.1,
        };
        let layer = manifest.component().map_err(|error| error.context(reference))?;
        let max_bytes = self.shared.policy.max_bytes;
        if layer.size > max_bytes {
            return Err(too_large(format_args!("{reference}"), max_bytes));
        }
        let (verified, evidence) = self.verify(reference, place, resolved).await?;
        let digest = layer.digest()?;
        let record =
            Record { source: reference.to_string(), component: digest, manifest: Some(resolved), evidence };
        let request = registry.blob(place, digest);
        let component = self.component(key, tenant, record, Some(layer.size), request).await?;
        Ok(Fetched { component, resolved: Some(resolved), verified, stale: None })
    }

    /// Verifies the signatures that the policy requires of a manifest.
    async fn verify(
        &self,
        reference: &Reference,
        place: &Place,
        manifest: Digest,
    ) -> Result<(Verified, Vec<Evidence>), Error> {
        let name = reference.name();
        if self.shared.policy.signers_of(&name).is_none() {
            return Ok((Verified::NotRequired, Vec::new()));
        }
        let (evidence, unread) = self.shared.registry.evidence(place, manifest).await?;
        let verify = move |shared: &Shared| {
            let Some(signers) = shared.policy.signers_of(&name) else {
                return Ok((Verified::NotRequired, evidence));
            };
            let mut refusals = match signature::verify(&evidence, signers, manifest) {
                Ok(signer) => return Ok((Verified::SignedBy(signer), evidence)),
                Err(refusals) => refusals,
            };
            // The one that is missing may be valid: then the registry has to be asked again.
            let (temporary, unreadable): (Vec<_>, Vec<_>) =
                unread.into_iter().partition(|it| it.reason() == Reason::Unavailable);
            if let Some(error) = temporary.into_iter().next() {
                return Err(error);
            }
            refusals.extend(unreadable.iter().map(ToString::to_string));
            let found = match refusals.len() {
                0 => "it has no signature".to_owned(),
                n => format!("none of its {n} signatures is valid: {}", summary(&refusals)),
            };
            let message = format!("{name}@{manifest} must be signed {signers}, and {found}");
            Err(Error::new(Reason::NotSigned, message)
                .hint("sign it with `cosign sign` as the policy requires, or name a version that is signed"))
        };
        self.blocking(verify).await
    }
}

/// Returns the first of the refusals, each one once.
fn summary(refusals: &[String]) -> String {
    let mut first: Vec<&str> = Vec::new();
    for refusal in refusals {
        if first.len() < MAX_REFUSALS && !first.contains(&refusal.as_str()) {
            first.push(refusal);
        }
    }
    first.join("; ")
}
