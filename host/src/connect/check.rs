//! The first question to an API server: does it know us, and may we ask what plugins may do?

use std::{error::Error as _, time::Duration};

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::{Api, api::PostParams};

use super::Connection;
use crate::failure::Failure;

/// How long the API server may take to answer it.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Asks, and tells what is wrong in words that say what to do.
pub(crate) async fn check(connection: &Connection, source: &str) -> Result<(), Failure> {
    let Connection { client, server } = connection;
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
            return Err(Failure::caller(silence)
                .hint(format!("is this the address you mean? It comes from {source}")));
        }
    };
    let rights = "the host needs the rights that `oarlock rbac` prints";
    match answer {
        Ok(SelfSubjectAccessReview { status: Some(status), .. }) if status.allowed => Ok(()),
        Ok(_) => {
            let refused = anyhow::anyhow!(
                "{server} knows this user ({source}), who may not create subjectaccessreviews"
            );
            Err(Failure::caller(refused).hint(rights))
        }
        Err(kube::Error::Api(status)) if status.code == 401 => {
            let refused =
                anyhow::anyhow!("{server} refuses the credentials of {source}: {} (401)", status.message);
            Err(Failure::caller(refused).hint("has the token or the certificate expired?"))
        }
        Err(kube::Error::Api(status)) if status.code == 403 => {
            let refused = anyhow::anyhow!("{server} forbids {source}: {} (403)", status.message);
            Err(Failure::caller(refused).hint(rights))
        }
        Err(kube::Error::Api(status)) => {
            let strange = anyhow::anyhow!(
                "{server} does not answer like a Kubernetes API server that works: {} {}",
                status.code,
                status.message.lines().next().unwrap_or_default()
            );
            Err(Failure::caller(strange)
                .hint(format!("is this the address you mean? It comes from {source}")))
        }
        Err(error @ kube::Error::Auth(_)) => {
            let failed =
                anyhow::Error::new(error).context(format!("no credentials could be had from {source}"));
            Err(Failure::caller(failed).hint("does its login command work by itself?"))
        }
        Err(error) => {
            let failed = anyhow::anyhow!("{server} cannot be reached: {}", innermost(&error));
            Err(Failure::caller(failed)
                .hint(format!("is the API server up, and is this its address? It comes from {source}")))
        }
    }
}

/// The cause of all causes, which is what the system said.
fn innermost(error: &kube::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = error.to_string();
        cause = error.source();
    }
    message
}
