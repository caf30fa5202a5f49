//! `oarlock plugin test`: runs the cases of plugins.

mod shown;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Instant,
};

use oarlock_controller::config::PluginFile;
use oarlock_guest_build::progress;
use oarlock_plugin::EngineConfig;
use oarlock_plugin_test::{self as cases, Case, Job, accept, junit};
use tempfile::TempDir;

use self::shown::{Shown, Verdict};
use super::{
    super::{
        examine,
        sources::{LOOK, Sources, Written, folder},
    },
    build::plugin_file,
};
use crate::{
    args::TestArgs,
    failure::{Ended, Failure},
};

/// The folder of a plugin's cases, in the plugin's folder.
const CASES: &str = "cases";

/// A plugin and the files of its cases.
struct Chosen {
    file: PluginFile,
    /// The folder of the cases.
    folder: PathBuf,
    cases: Vec<PathBuf>,
    /// The names of the cases that `--name` leaves out.
    others: Vec<String>,
}

pub(super) async fn run(args: TestArgs, engine: EngineConfig) -> Ended {
    // A case cannot wait for a compiler, so compiled code must be stored somewhere.
    let (engine, _folder) = with_cache(engine)?;
    if !args.watch {
        return once(&args, &engine).await;
    }
    loop {
        let chosen = choose(&args)?;
        let watched = watched(&chosen, &args)?;
        let before = state(&watched);
        if let Err(failure) = once(&args, &engine).await {
            failure.print();
        }
        progress::say("waiting for a change; Ctrl-C ends");
        tokio::task::spawn_blocking(move || wait_for_change(&watched, &before))
            .await
            .map_err(Failure::running)?;
    }
}

/// Builds, compiles, and runs all cases once.
async fn once(args: &TestArgs, engine: &EngineConfig) -> Ended {
    let chosen = choose(args)?;
    if chosen.iter().all(|it| it.cases.is_empty()) {
        let others: Vec<_> = chosen.into_iter().flat_map(|it| it.others).collect();
        if let Some(part) = args.name.as_ref().filter(|_| !others.is_empty()) {
            let none = anyhow::anyhow!("no case has `{part}` in its name");
            return Err(Failure::caller(none).hint(format_args!("the cases are {}", others.join(", "))));
        }
        let none = anyhow::anyhow!("there are no cases");
        return Err(Failure::caller(none).hint(format_args!(
            "write one: a file such as {CASES}/first.yaml beside plugin.yaml (docs/testing-plugins.md), or name a folder with --cases"
        )));
    }
    let mut lines = Vec::new();
    let mut totals = Shown::default();
    for Chosen { file, cases, .. } in chosen {
        prepare(&file, args, engine).await?;
        totals.plugin(&file, cases.len())?;
        for path in cases {
            let (file, engine, accepts) = (file.clone(), engine.clone(), args.accept);
            let name = name_of(&path);
            let plugin = file.name.clone();
            let began = Instant::now();
            let verdict = match Case::read(&path) {
                Ok(case) => tokio::task::spawn_blocking(move || run_case(file, case, engine, accepts))
                    .await
                    .map_err(Failure::running)??,
                Err(error) => Verdict::Unreadable(error),
            };
            let took = began.elapsed();
            totals.case(&name, &path, &verdict, took)?;
            lines.push(junit::Line { plugin, case: name, took, failure: verdict.failure() });
        }
    }
    if let Some(path) = &args.junit {
        let written = junit::report(&lines).map_err(Failure::running)?;
        std::fs::write(path, written).map_err(|error| {
            let context = format!("the report {} cannot be written", path.display());
            Failure::caller(anyhow::Error::new(error).context(context))
                .hint("name a file in a writable folder with --junit")
        })?;
    }
    totals.end()
}

fn run_case(plugin: PluginFile, case: Case, engine: EngineConfig, accepts: bool) -> Result<Verdict, Failure> {
    let ran = match cases::run(Job { plugin, case: case.clone(), engine }) {
        Ok(ran) => ran,
        Err(error) => return Ok(Verdict::NotRun(error)),
    };
    if accepts && accept(&case, &ran).map_err(Failure::caller)? {
        return Ok(Verdict::Accepted);
    }
    Ok(if ran.passed() { Verdict::Passed } else { Verdict::Differs(ran) })
}

/// Builds the component, unless it is built elsewhere, and compiles it into the store of the engine.
async fn prepare(file: &PluginFile, args: &TestArgs, engine: &EngineConfig) -> Ended {
    if !args.no_build
        && let Some(sources) = Sources::beside(file)?
    {
        tokio::task::spawn_blocking(move || sources.build()).await.map_err(Failure::running)??;
    }
    let engine = examine::engine(engine.clone())?;
    examine::compile(&engine, &file.component).await.map(drop)
}

/// Returns the plugins that the arguments name, with their cases.
fn choose(args: &TestArgs) -> Result<Vec<Chosen>, Failure> {
    let mut chosen: BTreeMap<PathBuf, Chosen> = BTreeMap::new();
    for path in &args.paths {
        let (plugin, named) = plugin_of(path);
        let file = plugin_file(plugin)?;
        let all = args.cases.clone().unwrap_or_else(|| folder(&file.path).join(CASES));
        let mut cases = match named {
            Some(case) => vec![case],
            None => files(&all, args.cases.is_some())?,
        };
        let mut others = Vec::new();
        if let Some(part) = &args.name {
            cases.retain(|path| {
                let name = name_of(path);
                let is_chosen = name.contains(part);
                if !is_chosen {
                    others.push(name);
                }
                is_chosen
            });
        }
        let entry = chosen.entry(file.path.clone());
        let entry =
            entry.or_insert_with(|| Chosen { file, folder: all, cases: Vec::new(), others: Vec::new() });
        entry.cases.append(&mut cases);
        entry.others.append(&mut others);
    }
    Ok(chosen.into_values().collect())
}

/// Returns the plugin that a path names, and the case, if it names one: a file in a folder `cases`.
fn plugin_of(path: &Path) -> (&Path, Option<PathBuf>) {
    let parent = path.parent().filter(|parent| parent.file_name().is_some_and(|name| name == CASES));
    match parent.filter(|_| path.is_file()) {
        Some(cases) => {
            let plugin = cases.parent().filter(|it| *it != Path::new("")).unwrap_or(Path::new("."));
            (plugin, Some(path.to_owned()))
        }
        None => (path, None),
    }
}

/// Returns the name of the case in a file.
fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the cases in a folder, sorted by name.
fn files(folder: &Path, must_exist: bool) -> Result<Vec<PathBuf>, Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => return Ok(Vec::new()),
        Err(error) => {
            let context = format!("the folder {} cannot be read", folder.display());
            return Err(Failure::caller(anyhow::Error::new(error).context(context))
                .hint("name a folder of case files with --cases"));
        }
    };
    let mut cases = Vec::new();
    for entry in entries {
        let path = entry.map_err(Failure::running)?.path();
        let is_yaml = path.extension().is_some_and(|it| it == "yaml" || it == "yml");
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if is_yaml && !is_hidden && path.is_file() {
            cases.push(path);
        }
    }
    cases.sort();
    Ok(cases)
}

/// Makes sure that the engine stores compiled code.
fn with_cache(engine: EngineConfig) -> Result<(EngineConfig, Option<TempDir>), Failure> {
    if engine.cache_dir.is_some() {
        return Ok((engine, None));
    }
    let folder = tempfile::Builder::new().prefix("oarlock-compiled-").tempdir().map_err(Failure::running)?;
    Ok((EngineConfig { cache_dir: Some(folder.path().to_owned()), ..engine }, Some(folder)))
}

/// What `--watch` waits for.
struct Watched {
    sources: Option<Sources>,
    files: Vec<PathBuf>,
    /// The folder of the cases.
    folder: PathBuf,
}

fn watched(chosen: &[Chosen], args: &TestArgs) -> Result<Vec<Watched>, Failure> {
    let mut watched = Vec::new();
    let written = Written::new(&[args.junit.as_deref()], None, &[]);
    for Chosen { file, folder, .. } in chosen {
        let sources = if args.no_build { None } else { Sources::beside(file)? };
        watched.push(Watched {
            sources: sources.map(|it| Sources { written: written.clone(), ..it }),
            files: vec![file.path.clone(), file.component.clone()],
            folder: folder.clone(),
        });
    }
    Ok(watched)
}

/// Returns what changes when one of the files changes. A component that is built here changes with its
/// sources.
fn state(watched: &[Watched]) -> Vec<Option<u64>> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let of_file = |path: &Path, hasher: &mut DefaultHasher| {
        path.hash(hasher);
        std::fs::metadata(path).ok().map(|it| (it.len(), it.modified().ok())).hash(hasher);
    };
    let mut states = Vec::new();
    for Watched { sources, files, folder } in watched {
        let mut hasher = DefaultHasher::new();
        let n_files = if sources.is_some() { 1 } else { files.len() };
        files.iter().take(n_files).for_each(|path| of_file(path, &mut hasher));
        for case in self::files(folder, false).unwrap_or_default() {
            of_file(&case, &mut hasher);
        }
        states.push(Some(hasher.finish()));
        let mut hasher = DefaultHasher::new();
        let snapshot = sources.as_ref().and_then(Sources::state);
        states.push(snapshot.map(|it| {
            it.hash(&mut hasher);
            hasher.finish()
        }));
    }
    states
}

fn wait_for_change(watched: &[Watched], before: &[Option<u64>]) {
    while state(watched) == before {
        std::thread::park_timeout(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command, PluginArgs, PluginCommand};

    #[test]
    fn a_report_in_the_folder_of_the_plugin_is_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = "name: a\ncomponent: a.wasm\nserviceAccount: {namespace: default, name: a}\n";
        for (name, text) in [("plugin.yaml", file), ("requirements.txt", ""), ("report.xml", "1")] {
            fs::write(at(name), text).unwrap();
        }
        let line = [Path::new("oarlock"), Path::new("plugin"), Path::new("test"), Path::new("--watch")];
        let report = [Path::new("--junit"), &at("report.xml"), folder.path()];
        let args = Args::try_parse_from(line.into_iter().chain(report)).unwrap();
        let Command::Plugin(PluginArgs { command: PluginCommand::Test(args) }) = args.command else {
            unreachable!()
        };
        let watched = watched(&choose(&args).unwrap(), &args).unwrap();
        let before = state(&watched);
        fs::write(at("report.xml"), "2").unwrap();
        assert_eq!(state(&watched), before);
        fs::write(at("a.py"), "").unwrap();
        assert_ne!(state(&watched), before);
    }
}
