//! Hostile components harm only themselves when they are compiled (promise 4).

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use oarlock_plugin::{
    Component, Engine, EngineConfig,
    compiler::{Allowance, Compilation, CompilationState, Compiler},
    component::{ComponentFile, Error},
};

use oarlock_wait_until::{LIMIT, wait_until};

use super::{
    hostile,
    support::{engine, guest},
};

/// Returns an engine whose compiler may use little time.
fn impatient_engine() -> Engine {
    engine_with(Allowance { cpu: Duration::from_secs(2), memory: 8 << 30, ..Allowance::default() })
}

fn engine_with(allowance: Allowance) -> Engine {
    let compiler = Compiler { allowance, ..Compiler::default() };
    Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap()
}

async fn refusal(engine: &Engine, bytes: Vec<u8>) -> Error {
    Component::compile(engine, bytes).await.unwrap_err()
}

/// Returns whether the component compiled, but is not a plugin.
fn is_compiled(error: &Error) -> bool {
    matches!(error, Error::Mismatch { .. })
}

#[tokio::test]
async fn promise_4_nested_instances_are_counted_before_the_compilation() {
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
async fn promise_4_a_component_with_too_many_parts_is_refused_by_name() {
    insta::assert_snapshot!(refusal(engine(), hostile::deep_components(50)).await, @"the component has 17 levels of components in one another, more than the 16 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::locals_in_loops(20_000, 1)).await, @"the component has 20000 locals in one function, more than the 10000 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::many_functions(300_000)).await, @"the component has 300000 functions, more than the 250000 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::long_function(2 << 20)).await, @"the component has 4194306 bytes in the body of one function, more than the 2097152 that this host compiles");
    insta::assert_snapshot!(refusal(engine(), hostile::many_imports(50_000)).await, @"the component has 50000 imports of one core module, more than the 20000 that this host compiles");
}

#[tokio::test]
async fn promise_4_a_component_that_compiles_for_ever_is_refused_and_not_compiled_again() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let program = dir.path().join("compiler-that-counts");
    let script = format!("#!/bin/sh\necho run >> {}\nexec {} \"$@\"\n", runs.display(), compiler().display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let allowance = Allowance { cpu: Duration::from_secs(2), memory: 8 << 30, ..Allowance::default() };
    let compiler = Compiler { program: Some(program), allowance, ..Compiler::default() };
    let engine = Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap();
    let bytes = hostile::locals_in_loops(9_000, 300);
    assert!(bytes.len() < 128 << 10, "{}", bytes.len());
    let error = refusal(&engine, bytes.clone()).await;
    insta::assert_snapshot!(error, @r#"it does not compile: the compiler was ended when it used more than the 2 s of CPU time that a component of this size may take; does it have very large functions, or many components in one another? (In Rust, opt-level = "z" in [profile.release] of Cargo.toml makes functions smaller)"#);
    let n_runs = || fs::read_to_string(&runs).unwrap().lines().count();
    assert_eq!(n_runs(), 1);
    assert_eq!(refusal(&engine, bytes).await, error);
    assert_eq!(n_runs(), 1, "the failure is remembered");
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
async fn promise_4_a_component_that_takes_all_memory_of_a_container_is_refused_with_the_reason() {
    let compiler = Compiler { total_memory: Some(384 << 20), ..Compiler::default() };
    let engine = Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap();
    let bytes = hostile::locals_in_loops(9_000, 300);
    let error = refusal(&engine, bytes.clone()).await;
    let (before, said) =
        error.to_string().split_once(" (").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    insta::assert_snapshot!(before, @"it does not compile: the compiler was ended when it used more than the 384 MiB of memory that this container or service leaves to compilers");
    assert!(said.ends_with("). Fix: raise the limit of memory of the host's container or service"), "{said}");
    assert_eq!(refusal(&engine, bytes).await, error);
    Component::compile(&engine, guest("traps")).await.unwrap();
}

/// docs/installing.md has these limits.
#[tokio::test]
async fn components_compile_with_the_memory_of_containers() {
    let mut missing = Vec::new();
    for (limit_mib, guests) in [
        (4 << 10, &["hello-python", "hello-ts", "hello-go"][..]),
        (1_536, &["typed-objects"]),
        (512, &["hello-rust", "hello-c"]),
    ] {
        let compiler = Compiler { total_memory: Some((limit_mib << 20) / 8 * 5), ..Compiler::default() };
        let engine = Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap();
        for name in guests {
            match oarlock_built_guests::missing(name) {
                Some(reason) => missing.push(reason),
                None => {
                    let compiled = Component::compile(&engine, guest(name)).await;
                    compiled.unwrap_or_else(|error| panic!("{name}, {limit_mib} MiB: {error}"));
                }
            }
        }
    }
    oarlock_built_guests::skip_rest(&missing);
}

#[tokio::test]
async fn promise_4_a_small_component_with_much_code_is_refused() {
    let engine = engine_with(Allowance { code: 4 << 20, memory: 8 << 30, ..Allowance::default() });
    let error = refusal(&engine, hostile::sparse_memories(10)).await;
    assert!(matches!(error, Error::OverAllowance { what: "compiled code", .. }), "{error}");
}

#[tokio::test]
async fn promise_4_unusual_components_compile_or_are_refused_without_harm() {
    let engine = impatient_engine();
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
async fn promise_4_two_hostile_plugins_do_not_prevent_a_third_from_loading() {
    let long = Duration::from_secs(600);
    let engine = engine_with(Allowance { cpu: long, memory: 8 << 30, ..Allowance::default() });
    let hostile = ["one", "two"].map(|plugin| {
        let engine = engine.clone();
        let bytes = [hostile::locals_in_loops(9_000, 300), vec![0, 4, 3], plugin.into()].concat();
        Box::pin(async move { Component::compile_for(&engine, Some(plugin.into()), bytes).await })
    });
    let mut hostile = tokio::task::JoinSet::from_iter(hostile);
    wait_until("two running compilations", LIMIT, || {
        let compilations = engine.compilations();
        let is_running = |it: &&Compilation| matches!(it.state, CompilationState::Running { .. });
        if compilations.iter().filter(is_running).count() == 2 { Ok(()) } else { Err(compilations) }
    })
    .await;
    let good = Component::compile_for(&engine, Some("good".into()), guest("hello-rust")).await;
    good.unwrap();
    assert_eq!(engine.compilations().len(), 2);
    hostile.abort_all();
    while hostile.join_next().await.is_some() {}
    assert!(engine.compilations().is_empty());
}

#[tokio::test]
async fn a_dropped_compilation_ends_its_process() {
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
    wait_until("the child process", LIMIT, || match n_processes(&program) {
        1 => Ok(()),
        n => Err(n),
    })
    .await;
    compiling.abort_all();
    wait_until("the end of the child process", LIMIT, || match n_processes(&program) {
        0 => Ok(()),
        n => Err(n),
    })
    .await;
}

#[tokio::test]
async fn one_process_compiles_the_small_components_that_wait() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let script = format!(
        "#!/bin/sh\necho run >> {}\nwhile [ ! -e {} ]; do sleep 0.05; done\nexec {} \"$@\"\n",
        at("runs").display(),
        at("go").display(),
        compiler().display()
    );
    fs::write(at("compiler"), script).unwrap();
    fs::set_permissions(at("compiler"), fs::Permissions::from_mode(0o755)).unwrap();
    let compiler = Compiler { program: Some(at("compiler")), ..Compiler::default() };
    let engine = Engine::new(EngineConfig { compiler, compile_slots: 1, ..EngineConfig::default() }).unwrap();
    // Components with a custom section of their own.
    let named = |name: u8| [guest("traps"), vec![0, 2, 1, name]].concat();
    let compile = |name| {
        let (engine, bytes) = (engine.clone(), named(name));
        async move { Component::compile(&engine, bytes).await }
    };
    let mut compiling: tokio::task::JoinSet<_> = b"abc".iter().map(|name| compile(*name)).collect();
    wait_until("three compilations", LIMIT, || match engine.compilations().len() {
        3 => Ok(()),
        n => Err(n),
    })
    .await;
    fs::write(at("go"), "").unwrap();
    let mut components = Vec::new();
    while let Some(compiled) = compiling.join_next().await {
        components.push(compiled.unwrap().unwrap());
    }
    let n_runs = || fs::read_to_string(at("runs")).unwrap().lines().count();
    assert_eq!(n_runs(), 1);
    compile(b'd').await.unwrap();
    assert_eq!(n_runs(), 2, "the process ended when none waited");
}

#[tokio::test]
async fn a_compiler_that_prints_more_than_a_pipe_holds_is_not_held_up() {
    let dir = tempfile::tempdir().unwrap();
    let engine_with = |name: &str, end: &str| {
        let program = dir.path().join(name);
        let script = format!("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x >&2\n{end}\n");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let compiler = Compiler { program: Some(program), ..Compiler::default() };
        Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap()
    };
    let engine = engine_with("compiles", &format!("exec {} \"$@\"", compiler().display()));
    Component::compile(&engine, guest("traps")).await.unwrap();
    let error = refusal(&engine_with("dies", "exit 7"), guest("traps")).await.to_string();
    assert!(error.starts_with("it does not compile: the compiler failed (exit status: 7) (xxx"), "{error}");
    assert!(error.len() < 2 << 10, "{} bytes", error.len());
}

#[tokio::test]
async fn a_missing_or_broken_compiler_is_reported() {
    let error_with = async |program: PathBuf| {
        let compiler = Compiler { program: Some(program), ..Compiler::default() };
        let engine = Engine::new(EngineConfig { compiler, ..EngineConfig::default() }).unwrap();
        refusal(&engine, guest("traps")).await.to_string()
    };
    insta::assert_snapshot!(error_with("/no/such/compiler".into()).await, @"the compiler cannot be used: /no/such/compiler cannot be run: No such file or directory (os error 2); build it with `cargo build -p oarlock-plugin --bin oarlock-compiler`");
    insta::assert_snapshot!(error_with("/bin/false".into()).await, @"it does not compile: the compiler failed (exit status: 1)");
    insta::assert_snapshot!(error_with("/bin/true".into()).await, @"it does not compile: the compiler failed (exit status: 0)");
}

#[tokio::test]
async fn compiled_code_is_shared_and_found_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let config = || EngineConfig { cache_dir: Some(dir.path().to_owned()), ..EngineConfig::default() };
    let engine = Engine::new(config()).unwrap();
    let first = Component::compile(&engine, guest("hello-rust")).await.unwrap();
    let second = Component::compile_for(&engine, Some("other".into()), guest("hello-rust")).await.unwrap();
    assert!(first.is_same(&second), "two plugins with the same component share its code");
    drop((first, second, engine));
    // Without a compiler, the code must come from disk.
    let compiler = Compiler { program: Some("/no/such/compiler".into()), ..Compiler::default() };
    let engine = Engine::new(EngineConfig { compiler, ..config() }).unwrap();
    Component::compile(&engine, guest("hello-rust")).await.unwrap();
    assert!(Component::compile(&engine, guest("traps")).await.is_err());
}

#[tokio::test]
async fn compiled_code_is_mapped_from_its_file_and_takes_no_memory_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { cache_dir: Some(dir.path().to_owned()), ..EngineConfig::default() };
    let component = Component::compile(&Engine::new(config).unwrap(), guest("hello-rust")).await.unwrap();
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut is_code, mut is_executable, mut dirty_kib) = (false, false, 0);
    for line in maps.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            // The first line of a mapping: addresses, permissions, offset, device, inode, and perhaps a path.
            [addresses, permissions, _, _, _, ref path @ ..] if !addresses.ends_with(':') => {
                is_code = path.first().is_some_and(|path| Path::new(path).starts_with(dir.path()));
                is_executable |= is_code && permissions == "r-xp";
            }
            ["Private_Dirty:", kib, "kB"] if is_code => dirty_kib += kib.parse::<u64>().unwrap(),
            _ => {}
        }
    }
    assert!(is_executable, "no code is mapped from {}: {maps}", dir.path().display());
    assert_eq!(dirty_kib, 0);
    drop(component);
}

#[tokio::test]
async fn a_component_in_a_file_that_has_not_changed_is_found_without_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let config = || EngineConfig { cache_dir: Some(dir.path().join("cache")), ..EngineConfig::default() };
    let look = |path: &Path| ComponentFile::new(path, &fs::metadata(path).unwrap());
    let path = dir.path().join("traps.wasm");
    fs::write(&path, guest("traps")).unwrap();
    // A file that changed a moment ago is not noted.
    wait_until("the age of the file", LIMIT, || {
        match fs::metadata(&path).unwrap().modified().unwrap().elapsed() {
            Ok(age) if age > Duration::from_secs(3) => Ok(()),
            age => Err(age),
        }
    })
    .await;
    let engine = Engine::new(config()).unwrap();
    let seen = look(&path);
    assert!(Component::find(&engine, &seen).await.is_none());
    let read = Component::compile(&engine, fs::read(&path).unwrap()).await.unwrap();
    read.note_file(&seen);
    assert!(Component::find(&engine, &look(&path)).await.unwrap().is_same(&read));
    let (digest, imports) = (read.digest(), read.imports().to_vec());
    drop((read, engine));

    let engine = Engine::new(config()).unwrap();
    let found = Component::find(&engine, &look(&path)).await.expect("its code is on disk");
    assert_eq!((found.digest(), found.imports()), (digest, &*imports));
    drop((found, engine));
    // Another file with the same content has to be read.
    let copy = dir.path().join("copy.wasm");
    fs::copy(&path, &copy).unwrap();
    let engine = Engine::new(config()).unwrap();
    assert!(Component::find(&engine, &look(&copy)).await.is_none());
    // So has a file whose code is gone.
    for entry in fs::read_dir(dir.path().join("cache/code")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "code") {
            fs::remove_file(path).unwrap();
        }
    }
    assert!(Component::find(&engine, &look(&path)).await.is_none());
}

/// The compiler that this package builds.
fn compiler() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_oarlock-compiler"))
}

/// Returns the number of processes that run a program.
fn n_processes(program: &Path) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|it| fs::read_link(it.path().join("exe")).is_ok_and(|exe| exe == program)).count()
}

#[test]
fn the_compiler_refuses_to_run_without_a_host() {
    let output = std::process::Command::new(compiler()).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    insta::assert_snapshot!(said, @"the host runs this program to compile components; it is not for other uses");
}
