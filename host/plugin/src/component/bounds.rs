//! Counts the parts of a component, in one pass over its sections, before it is compiled.
//!
//! Deliberately not a validator, and not the limit on the compiler's resources: that is its
//! [process](crate::compiler). This module refuses in milliseconds, with the name of the part, components
//! that would only exhaust that process. Function bodies are measured, not read.
//!
//! Instances multiply: ten components that each instantiate the one before ten times are small, and have 10¹⁰
//! instances. So each component has a [`Cost`], which each of its instantiations adds to the enclosing
//! component.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef,
    Instance, Parser, Payload,
};

use super::Error;
use crate::guest;

/// The nesting of components and modules. Composed components have three or four levels.
const NESTING: u64 = 16;
/// Core modules. Languages that link dynamically have one for each library, some dozens.
const MODULES: u64 = 500;
/// Core instances in one instance of the component; also the maximum of `limits.coreInstances`.
pub(crate) const CORE_INSTANCES: u64 = 1_000;
/// Instances of components within one instance.
const COMPONENT_INSTANCES: u64 = 1_000;
/// Lifted and lowered functions, each of which becomes an adapter.
const ADAPTERS: u64 = 20_000;
/// Definitions (aliases, types, instances, …) that an instantiation processes.
const DEFINITIONS: u64 = 1_000_000;
/// Functions with a body. CPython has 15,000, SpiderMonkey 30,000.
const FUNCTIONS: u64 = 250_000;
/// Bytes of one function's body. Interpreters' loops have 200 KiB.
const BODY_BYTES: u64 = 2 << 20;
/// Locals of one function.
const LOCALS: u64 = 10_000;
/// Types.
const TYPES: u64 = 100_000;
/// Imports of one core module. Dynamically linked ones have some thousands.
const MODULE_IMPORTS: u64 = 20_000;
/// Exports of one core module.
const MODULE_EXPORTS: u64 = 100_000;
/// Imports or exports of a component.
const COMPONENT_NAMES: u64 = 1_000;

/// The parts of one instance of a component, including those of nested instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Cost {
    core_instances: u64,
    component_instances: u64,
    adapters: u64,
    definitions: u64,
}

/// A component or module whose sections are read at the moment.
#[derive(Debug, Default)]
struct Level {
    cost: Cost,
    /// The components that it can instantiate, by index. Empty for modules.
    components: Vec<Cost>,
    imports: u64,
    exports: u64,
    is_module: bool,
}

#[derive(Debug, Default)]
struct Counter {
    levels: Vec<Level>,
    modules: u64,
    functions: u64,
    types: u64,
}

/// Refuses a component that exceeds a limit.
pub(super) fn check(bytes: &[u8]) -> Result<(), Error> {
    let mut counter = Counter { levels: vec![Level::default()], ..Counter::default() };
    for payload in Parser::new(0).parse_all(bytes) {
        counter.count(&payload.map_err(malformed)?)?;
    }
    Ok(())
}

fn within(what: &'static str, found: u64, limit: u64) -> Result<(), Error> {
    if found > limit { Err(Error::TooComplex { what, found, limit }) } else { Ok(()) }
}

fn malformed(error: wasmparser::BinaryReaderError) -> Error {
    Error::Compile(guest::text::one_line(error))
}

// === impl Counter ===

impl Counter {
    fn count(&mut self, payload: &Payload<'_>) -> Result<(), Error> {
        match payload {
            Payload::ModuleSection { .. } => {
                self.modules += 1;
                within("core modules", self.modules, MODULES)?;
                self.enter(true)
            }
            Payload::ComponentSection { .. } => self.enter(false),
            Payload::End(_) => {
                self.leave();
                Ok(())
            }
            Payload::CodeSectionStart { count, .. } => {
                self.functions += u64::from(*count);
                within("functions", self.functions, FUNCTIONS)
            }
            Payload::CodeSectionEntry(body) => {
                within("bytes in the body of one function", body.range().len() as u64, BODY_BYTES)?;
                let mut locals = 0_u64;
                for group in body.get_locals_reader().map_err(malformed)? {
                    locals += u64::from(group.map_err(malformed)?.0);
                    within("locals in one function", locals, LOCALS)?;
                }
                Ok(())
            }
            Payload::TypeSection(section) => self.types(section.count()),
            Payload::CoreTypeSection(section) => self.types(section.count()),
            Payload::ComponentTypeSection(section) => self.types(section.count()),
            Payload::ImportSection(section) => self.module_names(section.count(), 0),
            Payload::ExportSection(section) => self.module_names(0, section.count()),
            Payload::InstanceSection(section) => {
                for instance in section.clone() {
                    let instance = instance.map_err(malformed)?;
                    let is_new = matches!(instance, Instance::Instantiate { .. });
                    self.add(Cost { core_instances: is_new.into(), definitions: 1, ..Cost::default() })?;
                }
                Ok(())
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section.clone() {
                    let instance = instance.map_err(malformed)?;
                    self.add(Cost { definitions: 1, ..Cost::default() })?;
                    if let ComponentInstance::Instantiate { component_index, .. } = instance {
                        let below = self.component(component_index)?;
                        self.add(Cost {
                            component_instances: below.component_instances.saturating_add(1),
                            ..below
                        })?;
                    }
                }
                Ok(())
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section.clone() {
                    self.alias(&alias.map_err(malformed)?)?;
                }
                Ok(())
            }
            Payload::ComponentCanonicalSection(section) => {
                let n = u64::from(section.count());
                self.add(Cost { adapters: n, definitions: n, ..Cost::default() })
            }
            Payload::ComponentImportSection(section) => {
                for import in section.clone() {
                    if matches!(import.map_err(malformed)?.ty, ComponentTypeRef::Component(_)) {
                        return Err(passed_around());
                    }
                }
                self.component_names(section.count(), 0)
            }
            Payload::ComponentExportSection(section) => {
                for export in section.clone() {
                    let export = export.map_err(malformed)?;
                    // An export defines a further index for the exported component.
                    if export.kind == ComponentExternalKind::Component {
                        let cost = self.component(export.index)?;
                        self.level().components.push(cost);
                    }
                }
                self.component_names(0, section.count())
            }
            _ => Ok(()),
        }
    }

    fn level(&mut self) -> &mut Level {
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn enter(&mut self, is_module: bool) -> Result<(), Error> {
        self.levels.push(Level { is_module, ..Level::default() });
        within("levels of components in one another", self.levels.len() as u64, NESTING)
    }

    fn leave(&mut self) {
        let Some(level) = self.levels.pop() else { return };
        if !level.is_module && !self.levels.is_empty() {
            self.level().components.push(level.cost);
        }
    }

    /// Adds to the cost of the component that is read at the moment.
    fn add(&mut self, more: Cost) -> Result<(), Error> {
        let cost = &mut self.level().cost;
        *cost = cost.and(more);
        let Cost { core_instances, component_instances, adapters, definitions } = *cost;
        within(
            "core instances, counting each instance of a component in it",
            core_instances,
            CORE_INSTANCES,
        )?;
        within("instances of components in it", component_instances, COMPONENT_INSTANCES)?;
        within("lifted and lowered functions", adapters, ADAPTERS)?;
        within("definitions to instantiate", definitions, DEFINITIONS)
    }

    fn component(&mut self, index: u32) -> Result<Cost, Error> {
        let found = self.level().components.get(index as usize).copied();
        found.ok_or_else(|| Error::Compile(format!("unknown component {index}: index out of bounds")))
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), Error> {
        self.add(Cost { definitions: 1, ..Cost::default() })?;
        match alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => {
                Err(passed_around())
            }
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                let level = self.levels.len().checked_sub(1 + *count as usize);
                let cost = level.and_then(|it| self.levels[it].components.get(*index as usize)).copied();
                let cost = cost.ok_or_else(|| Error::Compile(format!("unknown outer component {index}")))?;
                self.level().components.push(cost);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn types(&mut self, count: u32) -> Result<(), Error> {
        self.types += u64::from(count);
        within("types", self.types, TYPES)?;
        if self.level().is_module {
            return Ok(());
        }
        self.add(Cost { definitions: count.into(), ..Cost::default() })
    }

    fn module_names(&mut self, imports: u32, exports: u32) -> Result<(), Error> {
        let level = self.level();
        level.imports += u64::from(imports);
        level.exports += u64::from(exports);
        let (imports, exports) = (level.imports, level.exports);
        within("imports of one core module", imports, MODULE_IMPORTS)?;
        within("exports of one core module", exports, MODULE_EXPORTS)
    }

    fn component_names(&mut self, imports: u32, exports: u32) -> Result<(), Error> {
        let level = self.level();
        level.imports += u64::from(imports);
        level.exports += u64::from(exports);
        let (imports, exports) = (level.imports, level.exports);
        within("imports of one component", imports, COMPONENT_NAMES)?;
        within("exports of one component", exports, COMPONENT_NAMES)?;
        self.add(Cost { definitions: (imports + exports).min(COMPONENT_NAMES), ..Cost::default() })
    }
}

/// Components as arguments and results could be instantiated by components that are not counted here. No tool
/// produces them.
fn passed_around() -> Error {
    Error::Compile("components that are imported, or exported by instances, are not supported".to_owned())
}

// === impl Cost ===

impl Cost {
    fn and(self, more: Self) -> Self {
        Self {
            core_instances: self.core_instances.saturating_add(more.core_instances),
            component_instances: self.component_instances.saturating_add(more.component_instances),
            adapters: self.adapters.saturating_add(more.adapters),
            definitions: self.definitions.saturating_add(more.definitions),
        }
    }
}
