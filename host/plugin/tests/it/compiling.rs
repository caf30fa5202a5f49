//! Compiling hostile components costs them, and nobody else (promise 4).

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use oarlock_plugin::{
    Allowance, CompilationState, Compiler, Component, Engine, EngineConfig, component::Error,
};

use super::{
    hostile,
    support::{engine, guest},
};

/// An engine whose compiler may use little time.
fn hasty() -> Engine {
    engine_with(Allowance { cpu: Duration::from_secs(2), memory: 8 << 30, ..Allowance::default() })
}

fn engine_with(allowance: Allowance) -> Engine {
    let compiler = Compiler { allowance, ..Compiler::default() };
    Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap()
}

async fn refusal(engine: &Engine, bytes: Vec<u8>) -> Error {
    Component::compile(engine, bytes).await.unwrap_err()
}

/// What compiles, but is no plugin.
fn is_compiled(error: &Error) -> bool {
    matches!(error, Error::Mismatch { .. })
}

#[tokio::test]
async fn promise_4_instances_that_multiply_are_counted_before_anything_is_compiled() {
    for levels in [3, 4, 7, 14] {
        for bytes in
            [hostile::nested_instantiations(levels), hostile::instantiations_within_one_another(levels)]
        {
            assert!(bytes.len() < 4 << 10);
            let error = refusal(engine(), bytes).await;
            if levels == 3 {
                assert!(is_compiled(&error), "a thousand are allowed: {error}");
            } else {
                assert!(matches!(error, Error::TooComplex { .. }), "{error}");
            }
        }
    }
    let error = refusal(engine(), hostile::nested_instantiations(7)).await;
    insta::assert_snapshot!(error, @"the component has 2000 core instances, counting each instance of a component in it, more than the 1000 that this host compiles");
}

#[tokio::test]
async fn promise_4_what_no_plugin_needs_is_refused_by_name() {
    insta::assert_snapshot!(refusal(engine(), hostile::deep_components(50)).await, @"the component has 17 levels of components in one another, more than the 16 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::locals_in_loops(20_000, 1)).await, @"the component has 20000 locals in one function, more than the 10000 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::many_functions(300_000)).await, @"the component has 300000 functions, more than the 250000 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::long_function(2 << 20)).await, @"the component has 4194306 bytes in the body of one function, more than the 2097152 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::many_imports(50_000)).await, @"the component has 50000 imports of one core module, more than the 20000 that this host compiles");
}

#[tokio::test]
async fn promise_4_a_component_that_compiles_for_ever_is_refused() {
    let engine = hasty();
    let bytes = hostile::locals_in_loops(9_000, 300);
    assert!(bytes.len() < 128 << 10, "{}", bytes.len());
    let error = refusal(&engine, bytes.clone()).await;
    insta::assert_snapshot!(error, @"it does not compile: the compiler was ended when it used more than the 2 s of CPU time that a component of this size may take; does it have very large functions, or many components in one another?");
    // It is not tried again for the next who wants it.
    let began = Instant::now();
    assert_eq!(refusal(&engine, bytes).await, error);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    Component::compile(&engine, guest("traps")).await.unwrap();
}

#[tokio::test]
async fn promise_4_a_component_that_takes_all_memory_to_compile_is_refused() {
    let engine = engine_with(Allowance { memory: 384 << 20, memory_per_byte: 0, ..Allowance::default() });
    let error = refusal(&engine, hostile::locals_in_loops(9_000, 300)).await;
    assert!(matches!(error, Error::OverAllowance { what: "memory", .. }), "{error}");
    Component::compile(&engine, guest("traps")).await.unwrap();
}

#[tokio::test]
async fn promise_4_little_that_becomes_much_code_is_refused() {
    let engine = engine_with(Allowance { code: 4 << 20, memory: 8 << 30, ..Allowance::default() });
    let error = refusal(&engine, hostile::sparse_memories(10)).await;
    assert!(matches!(error, Error::OverAllowance { what: "compiled code", .. }), "{error}");
}

#[tokio::test]
async fn promise_4_what_is_merely_odd_compiles_or_is_refused_and_hurts_nobody() {
    let engine = hasty();
    let components = [
        hostile::jump_table(1 << 20),
        hostile::nested_blocks(10_000),
        hostile::nested_blocks(300_000),
        hostile::long_function(500_000),
        hostile::giant_data(16 << 20),
        hostile::many_functions(10_000),
    ];
    for bytes in components {
        let error = refusal(&engine, bytes).await;
        let is_refused =
            matches!(error, Error::OverAllowance { .. } | Error::Compile(_) | Error::TooComplex { .. });
        assert!(is_compiled(&error) || is_refused, "{error}");
    }
    Component::compile(&engine, guest("traps")).await.unwrap();
}

#[tokio::test]
async fn promise_4_two_hostile_plugins_do_not_keep_a_third_from_loading() {
    let long = Duration::from_secs(600);
    let engine = engine_with(Allowance { cpu: long, memory: 8 << 30, ..Allowance::default() });
    let hostile = ["one", "two"].map(|plugin| {
        let engine = engine.clone();
        let bytes = [hostile::locals_in_loops(9_000, 300), vec![0, 4, 3], plugin.into()].concat();
        Box::pin(async move { Component::compile_for(&engine, Some(plugin.into()), bytes).await })
    });
    let mut hostile = tokio::task::JoinSet::from_iter(hostile);
    let both_run = || {
        let compilations = engine.compilations();
        compilations.iter().filter(|it| matches!(it.state, CompilationState::Running { .. })).count() == 2
    };
    until("both run", both_run).await;
    let good = Component::compile_for(&engine, Some("good".into()), guest("hello-rust")).await;
    good.unwrap();
    assert_eq!(engine.compilations().len(), 2);
    hostile.abort_all();
    while hostile.join_next().await.is_some() {}
    assert!(engine.compilations().is_empty());
}

#[tokio::test]
async fn a_compilation_that_nobody_wants_any_more_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("compiler-of-this-test");
    fs::copy(compiler(), &program).unwrap();
    let allowance = Allowance { memory: 8 << 30, ..Allowance::default() };
    let compiler = Compiler { program: Some(program.clone()), allowance, ..Compiler::default() };
    let engine = Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap();
    let mut compiling = tokio::task::JoinSet::new();
    compiling.spawn({
        let engine = engine.clone();
        async move { Component::compile(&engine, hostile::locals_in_loops(9_000, 300)).await }
    });
    until("the child runs", || n_processes(&program) == 1).await;
    compiling.abort_all();
    until("the child is gone", || n_processes(&program) == 0).await;
}

#[tokio::test]
async fn a_compiler_that_is_missing_or_broken_is_said_and_is_nobodys_fault() {
    let said = async |program: PathBuf| {
        let compiler = Compiler { program: Some(program), ..Compiler::default() };
        let engine = Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap();
        refusal(&engine, guest("traps")).await.to_string()
    };
    insta::assert_snapshot!(said("/no/such/compiler".into()).await, @"the compiler cannot be used: /no/such/compiler cannot be run: No such file or directory (os error 2); build it with `cargo build -p oarlock-plugin --bin oarlock-compiler`");
    insta::assert_snapshot!(said("/bin/false".into()).await, @"it does not compile: the compiler failed (exit status: 1)");
    let silent = said("/bin/true".into()).await;
    assert!(silent.starts_with("compiled code cannot be written to or loaded from "), "{silent}");
}

#[tokio::test]
async fn compiled_code_is_found_again_and_shared() {
    let dir = tempfile::tempdir().unwrap();
    let config = || EngineConfig { cache_dir: Some(dir.path().to_owned()), ..EngineConfig::default() };
    let engine = Engine::new(config()).unwrap();
    let first = Component::compile(&engine, guest("hello-rust")).await.unwrap();
    let second = Component::compile_for(&engine, Some("other".into()), guest("hello-rust")).await.unwrap();
    assert!(first.is_same(&second), "two plugins of one component share its code");
    drop((first, second, engine));
    // Without a compiler, so that it can only be found.
    let compiler = Compiler { program: Some("/no/such/compiler".into()), ..Compiler::default() };
    let engine = Engine::new(EngineConfig { compiler, ..config() }).unwrap();
    Component::compile(&engine, guest("hello-rust")).await.unwrap();
    assert!(Component::compile(&engine, guest("traps")).await.is_err());
}

/// The compiler that this package builds.
fn compiler() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_oarlock-compiler"))
}

/// How many processes run a program.
fn n_processes(program: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|it| fs::read_link(it.path().join("exe")).is_ok_and(|exe| exe == program)).count()
}

/// Waits for something that another process has to do.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let patience = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), patience)
        .await
        .unwrap_or_else(|_| panic!("not within 60 s: {what}"));
}

#[test]
fn the_compiler_does_nothing_for_others() {
    let output = std::process::Command::new(compiler()).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    insta::assert_snapshot!(said, @"this program is run by the host, to compile one component");
}
