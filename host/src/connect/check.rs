//! The first request to an API server: checks the credentials, and the right to create access reviews.

use std::{error::Error as _, time::Duration};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};

use super::Connection;
use crate::failure::Failure;

/// The time limit of the request.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Why the request failed.
pub(crate) struct Refusal {
    /// Says what to do.
    pub(crate) failure: Failure,
    /// The API server is away, starts or is overloaded.
    pub(crate) may_pass: bool,
}

/// Sends the request.
pub(crate) async fn check(connection: &Connection, source: &str) -> Result<(), Refusal> {
    let Connection { client, server, .. } = connection;
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                group: Some("authorization.k8s.io".to_owned()),
                resource: Some("subjectaccessreviews".to_owned()),
                verb: Some("create".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let params = PostParams::default();
    let answer = match tokio::time::timeout(TIMEOUT, reviews.create(&params, &review)).await {
        Ok(answer) => answer,
        Err(_) => {
            let silence = anyhow::anyhow!("{server} does not answer within {} s", TIMEOUT.as_secs());
            let failure =
                Failure::running(silence).hint(format!("check the address, which comes from {source}"));
            return Err(Refusal { failure, may_pass: true });
        }
    };
    let hint = "apply the rights that `oarlock rbac PLUGIN…` prints, or, for a host of Plugin objects, `oarlock install --print`";
    let may_pass = match &answer {
        Err(kube::Error::Api(status)) => status.code == 429 || status.code >= 500,
        Err(kube::Error::Auth(_)) | Ok(_) => false,
        Err(_) => true,
    };
    let refused = match answer {
        Ok(SelfSubjectAccessReview { status: Some(status), .. }) if status.allowed => return Ok(()),
        Ok(_) => {
            let refused = anyhow::anyhow!(
                "{server} accepts the credentials of {source}, but this user may not create subjectaccessreviews"
            );
            Failure::caller(refused).hint(hint)
        }
        Err(kube::Error::Api(status)) if status.code == 401 => {
            let refused =
                anyhow::anyhow!("{server} rejects the credentials of {source}: {} (401)", status.message);
            Failure::caller(refused).hint("check whether the token or the certificate has expired")
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let refused = anyhow::anyhow!("{server} forbids {source}: {} (403)", status.message);
            Failure::caller(refused).hint(hint)
        }
        Err(kube::Error::Api(status)) => {
            let strange = anyhow::anyhow!(
                "{server} does not answer like a working Kubernetes API server: {} {}",
                status.code,
                status.message.lines().next().unwrap_or_default()
            );
            // A server that is overloaded or starts may answer the next try.
            let failure = if may_pass { Failure::running(strange) } else { Failure::caller(strange) };
            failure.hint(format!("check the address, which comes from {source}"))
        }
        Err(error @ kube::Error::Auth(_)) => {
            let failed = anyhow::Error::new(error).context(format!("{source} provides no credentials"));
            Failure::caller(failed).hint("run its login command by hand")
        }
        Err(error) => {
            let cause = innermost(&error);
            let failed = anyhow::anyhow!("{server} cannot be reached: {cause}");
            match about_tls(&cause, source) {
                Some(hint) => Failure::caller(failed).hint(hint),
                None => Failure::running(failed).hint(format!(
                    "check that the API server runs, and the address, which comes from {source}"
                )),
            }
        }
    };
    Err(Refusal { failure: refused, may_pass })
}

/// Returns a hint if the server's certificate is not accepted, or if it speaks HTTP where HTTPS is expected,
/// or the other way round. The texts are those of rustls and hyper.
fn about_tls(cause: &str, source: &str) -> Option<String> {
    if cause.contains("invalid peer certificate") {
        return Some(format!(
            "the server answers: check certificate-authority(-data) and the address, which come from {source}"
        ));
    }
    if cause.contains("InvalidContentType") {
        return Some(format!(
            "if the server speaks plain HTTP, write http:// in place of https:// in the address, which comes from {source}"
        ));
    }
    cause.contains("invalid HTTP version parsed").then(|| {
        format!(
            "if the server expects TLS, write https:// in place of http:// in the address, which comes from {source}"
        )
    })
}

/// Returns the innermost cause, which is the system's message.
fn innermost(error: &kube::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = error.to_string();
        cause = error.source();
    }
    message
}
