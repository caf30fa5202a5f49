//! PUT of an object or of its status.

use crate::call::Call;
use crate::definitions;
use crate::form;
use crate::respond::Body;
use crate::status::StatusError;
use crate::table::Include;
use crate::write::{self, meta, meta_mut};
use http::Response;

pub(crate) fn update(call: &Call) -> Result<Response<Body>, StatusError> {
    let dry_run = call.query.dry_run()?;
    let validation = call.field_validation()?;
    let mut object = call.decode_body()?;
    write::check_identity(call, &mut object)?;
    write::check_name(call, &mut object)?;
    let decoded = call.model().decode(object, validation)?;
    let (manager, now) = (call.manager(), call.now());
    let (stored, created) = call.cluster.write(dry_run, |transaction, served| {
        let writer = write::writer(call, &manager, &now);
        let Some(current) = transaction.get(&call.resource.storage, &call.key()) else {
            if !call.resource.create_on_update || call.is_status() || !meta(&decoded.object, "uid").is_empty()
            {
                return Err(call.not_found());
            }
            let mut object = decoded.object;
            // The resourceVersion of a missing object is ignored.
            meta_mut(&mut object).shift_remove("resourceVersion");
            let stored = write::create(call, transaction, object, Some(writer))?;
            return Ok((stored, true));
        };
        write::check_uid(call, &decoded.object, &current)?;
        let old = call.resource.served(&current)?;
        let stored = write::update(call, transaction, served, &current, &old, decoded.object, Some(writer))?;
        Ok((stored, false))
    })?;
    definitions::after_write(call, &stored, dry_run)?;
    let code = if created { 201 } else { 200 };
    let mut response = form::object(code, &call.resource, call.accepted, &stored, Include::Metadata)?;
    form::add_warnings(&mut response, &decoded.warnings);
    Ok(response)
}
