//! The functions of the exported interface `handler`, with arguments that borrow their texts.
//!
//! The generated functions take owned texts, which a call would have to allocate.

use wasmtime::{
    Store,
    component::{ComponentExportIndex, Instance, InstancePre, TypedFunc},
};

use crate::{
    contract::{AddedArgument, DeletedArgument, Failure, Synced, UpdatedArgument},
    state::StoreState,
};

/// The name of the interface.
const INTERFACE: &str = "oarlock:plugin/handler@0.1.0";

/// What each function of the interface returns.
type Answer = (Result<(), Failure>,);

/// The indices of the functions in a component.
pub(crate) struct HandlerIndices {
    on_add: ComponentExportIndex,
    on_update: ComponentExportIndex,
    on_delete: ComponentExportIndex,
    on_synced: ComponentExportIndex,
}

/// The functions of one instance. The lifetimes do not matter: a function takes any shorter one.
pub(crate) struct Handler {
    pub(crate) on_add: TypedFunc<(&'static AddedArgument<'static>,), Answer>,
    pub(crate) on_update: TypedFunc<(&'static UpdatedArgument<'static>,), Answer>,
    pub(crate) on_delete: TypedFunc<(&'static DeletedArgument<'static>,), Answer>,
    pub(crate) on_synced: TypedFunc<(&'static Synced,), Answer>,
}

// === impl HandlerIndices ===

impl HandlerIndices {
    pub(super) fn new(pre: &InstancePre<StoreState>) -> wasmtime::Result<Self> {
        let component = pre.component();
        let interface = component
            .get_export_index(None, INTERFACE)
            .ok_or_else(|| wasmtime::format_err!("no exported instance named `{INTERFACE}`"))?;
        let function = |name: &str| {
            component.get_export_index(Some(&interface), name).ok_or_else(|| {
                wasmtime::format_err!("instance export `{INTERFACE}` does not have export `{name}`")
            })
        };
        Ok(Self {
            on_add: function("on-add")?,
            on_update: function("on-update")?,
            on_delete: function("on-delete")?,
            on_synced: function("on-synced")?,
        })
    }

    /// Returns the functions of an instance, whose types it checks.
    pub(super) fn load(
        &self,
        store: &mut Store<StoreState>,
        instance: &Instance,
    ) -> wasmtime::Result<Handler> {
        Ok(Handler {
            on_add: instance.get_typed_func(&mut *store, self.on_add)?,
            on_update: instance.get_typed_func(&mut *store, self.on_update)?,
            on_delete: instance.get_typed_func(&mut *store, self.on_delete)?,
            on_synced: instance.get_typed_func(&mut *store, self.on_synced)?,
        })
    }
}
