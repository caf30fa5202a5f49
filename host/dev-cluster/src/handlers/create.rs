//! POST of a new object.

use crate::call::Call;
use crate::definitions;
use crate::form;
use crate::namespaces;
use crate::respond::Body;
use crate::status::StatusError;
use crate::table::Include;
use crate::write;
use http::Response;

pub(crate) fn create(call: &Call) -> Result<Response<Body>, StatusError> {
    let dry_run = call.query.dry_run()?;
    let validation = call.field_validation()?;
    let mut object = call.decode_body()?;
    write::check_identity(call, &mut object)?;
    let decoded = call.model().decode(object, validation)?;
    let (manager, now) = (call.manager(), call.now());
    let stored = call.cluster.write(dry_run, |transaction, served| {
        let writer = write::writer(call, &manager, &now);
        let stored = write::create(call, transaction, decoded.object, Some(writer))?;
        if call.resource.is("", "namespaces") {
            namespaces::create_default_account(transaction, served, &stored.name)?;
        }
        Ok(stored)
    })?;
    definitions::after_write(call, &stored, dry_run)?;
    let mut response = form::object(201, &call.resource, call.accepted, &stored, Include::Metadata)?;
    form::add_warnings(&mut response, &decoded.warnings);
    Ok(response)
}
