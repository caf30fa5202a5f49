//! GET of one object.

use crate::call::Call;
use crate::form;
use crate::query::Version;
use crate::respond::Body;
use crate::status::StatusError;
use crate::table;
use http::Response;

pub(crate) async fn get(call: &Call) -> Result<Response<Body>, StatusError> {
    let options = call.query.list_options()?;
    if let Version::At(wanted) = options.resource_version {
        super::list::wait_for(&call.cluster, wanted).await?;
    }
    let object =
        call.cluster.store.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let include = table::Include::parse(call.query.get("includeObject"))?;
    form::object(200, &call.resource, call.accepted, &object, include)
}
