//! Components that are expensive to compile, written byte by byte.

/// Makes a component look like a plugin: exports an empty instance under the names of a plugin's exports.
const NAMES: [&str; 2] = ["oarlock:plugin/metadata@0.1.0", "oarlock:plugin/handler@0.1.0"];

const MODULE: &[u8] = b"\0asm\x01\0\0\0";
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// Section numbers of components.
const CORE_MODULE: u8 = 1;
const CORE_INSTANCES: u8 = 2;
const NESTED: u8 = 4;
const INSTANCES: u8 = 5;
const ALIASES: u8 = 6;
const EXPORTS: u8 = 11;

/// An unsigned LEB128 number.
fn number(mut n: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (n & 0x7f) as u8;
        n >>= 7;
        if n == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn with_length(bytes: &[u8]) -> Vec<u8> {
    [number(bytes.len()), bytes.to_vec()].concat()
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [vec![id], with_length(content)].concat()
}

/// Returns a vector with the same item `n` times.
fn repeated(n: usize, item: &[u8]) -> Vec<u8> {
    [number(n), item.repeat(n)].concat()
}

/// Returns sections that look like those of a plugin.
fn plugin(sections: &[Vec<u8>], n_instances: usize) -> Vec<u8> {
    let empty = section(INSTANCES, &repeated(1, &[1, 0]));
    let mut exports = number(NAMES.len());
    for name in NAMES {
        exports
            .extend([vec![0], with_length(name.as_bytes()), vec![5], number(n_instances), vec![0]].concat());
    }
    [COMPONENT.to_vec(), sections.concat(), empty, section(EXPORTS, &exports)].concat()
}

/// Returns a module of one or more equal functions `() -> ()`.
fn module(n_functions: usize, body: &[u8]) -> Vec<u8> {
    let types = section(1, &[1, 0x60, 0, 0]);
    let functions = section(3, &repeated(n_functions, &[0]));
    let code = section(10, &repeated(n_functions, &with_length(body)));
    [MODULE.to_vec(), types, functions, code].concat()
}

fn of_module(module: &[u8]) -> Vec<u8> {
    plugin(&[section(CORE_MODULE, module)], 0)
}

/// Returns components that each instantiate the one before ten times; the innermost is a module: 10^`levels`
/// instances.
pub(super) fn nested_instantiations(levels: usize) -> Vec<u8> {
    let tiny = module(1, &[0, 0x0b]);
    let innermost =
        [COMPONENT.to_vec(), section(CORE_MODULE, &tiny), section(CORE_INSTANCES, &repeated(10, &[0, 0, 0]))];
    let mut sections = vec![section(NESTED, &innermost.concat())];
    for level in 1..levels {
        let before = [vec![1, 4, 2, 1], number(level - 1)].concat();
        let component =
            [COMPONENT.to_vec(), section(ALIASES, &before), section(INSTANCES, &repeated(10, &[0, 0, 0]))];
        sections.push(section(NESTED, &component.concat()));
    }
    sections.push(section(INSTANCES, &[vec![1, 0], number(levels - 1), vec![0]].concat()));
    plugin(&sections, 1)
}

/// Does the same as [`nested_instantiations`], with each component nested in the next.
pub(super) fn instantiations_within_one_another(levels: usize) -> Vec<u8> {
    let tiny = module(1, &[0, 0x0b]);
    let mut component =
        [COMPONENT.to_vec(), section(CORE_MODULE, &tiny), section(CORE_INSTANCES, &repeated(10, &[0, 0, 0]))]
            .concat();
    for _ in 1..levels {
        component =
            [COMPONENT.to_vec(), section(NESTED, &component), section(INSTANCES, &repeated(10, &[0, 0, 0]))]
                .concat();
    }
    plugin(&[section(NESTED, &component), section(INSTANCES, &[1, 0, 0, 0])], 1)
}

/// Returns empty nested components.
pub(super) fn deep_components(levels: usize) -> Vec<u8> {
    let mut component = COMPONENT.to_vec();
    for _ in 1..levels {
        component = [COMPONENT.to_vec(), section(NESTED, &component)].concat();
    }
    plugin(&[section(NESTED, &component)], 0)
}

/// Returns one function with many locals, which are all used within nested loops. The compiler's work grows
/// with the product of both numbers.
pub(super) fn locals_in_loops(locals: usize, loops: usize) -> Vec<u8> {
    let mut body = [vec![1], number(locals), vec![0x7f]].concat();
    body.extend([0x03, 0x40].repeat(loops));
    for local in 0..locals {
        // local.get, i32.const 1, i32.add, local.set
        body.extend([vec![0x20], number(local), vec![0x41, 1, 0x6a, 0x21], number(local)].concat());
    }
    for depth in 0..loops {
        // local.get 0, br_if 0: every loop may repeat.
        body.extend([vec![0x20], number(depth % locals), vec![0x0d, 0], vec![0x0b]].concat());
    }
    body.push(0x0b);
    of_module(&module(1, &body))
}

/// Returns one function with a large jump table of two targets.
pub(super) fn jump_table(targets: usize) -> Vec<u8> {
    let jump = [vec![0x41, 0, 0x0e], repeated(targets, &[0]), vec![1]].concat();
    let body = [vec![0, 0x02, 0x40, 0x02, 0x40], jump, vec![0x0b, 0x0b, 0x0b]].concat();
    of_module(&module(1, &body))
}

/// Returns one function of nested blocks, with a jump to each from the innermost.
pub(super) fn nested_blocks(depth: usize) -> Vec<u8> {
    let mut jump = vec![0x41, 0, 0x0e];
    jump.extend(number(depth));
    (0..depth).for_each(|to| jump.extend(number(to)));
    jump.push(0);
    let body = [vec![0], [0x02, 0x40].repeat(depth), jump, vec![0x0b; depth], vec![0x0b]].concat();
    of_module(&module(1, &body))
}

/// Returns `n` empty functions.
pub(super) fn many_functions(n: usize) -> Vec<u8> {
    of_module(&module(n, &[0, 0x0b]))
}

/// Returns one function with `n` calls of itself.
pub(super) fn long_function(calls: usize) -> Vec<u8> {
    of_module(&module(1, &[vec![0], [0x10, 0].repeat(calls), vec![0x0b]].concat()))
}

/// Returns a module with `n` imports.
pub(super) fn many_imports(n: usize) -> Vec<u8> {
    let types = section(1, &[1, 0x60, 0, 0]);
    let imports = section(2, &repeated(n, &[1, b'm', 1, b'f', 0, 0]));
    of_module(&[MODULE.to_vec(), types, imports].concat())
}

/// Returns a module with an unused data segment of this length.
pub(super) fn giant_data(bytes: usize) -> Vec<u8> {
    let data = [vec![1, 1], with_length(&vec![b'x'; bytes])].concat();
    of_module(&[MODULE.to_vec(), section(12, &[1]), section(11, &data)].concat())
}

/// Returns `n` modules, each with a byte at both ends of 16 MiB of memory.
pub(super) fn sparse_memories(modules: usize) -> Vec<u8> {
    let memory = section(5, &[1, 0, 255, 1]);
    let byte = |at: Vec<u8>| [vec![0, 0x41], at, vec![0x0b, 1, 1]].concat();
    let far = (16 << 20) - 65_537_usize;
    let far = byte(signed(far));
    let data = section(11, &[vec![2], byte(vec![0]), far].concat());
    let module = [MODULE.to_vec(), memory, data].concat();
    plugin(&vec![section(CORE_MODULE, &module); modules], 0)
}

/// A signed LEB128 number that is not negative.
fn signed(n: usize) -> Vec<u8> {
    let mut bytes = number(n);
    if let Some(last) = bytes.last_mut()
        && *last & 0x40 != 0
    {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes
}
