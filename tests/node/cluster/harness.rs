//! Runs the tests of one node, and prints their results as the standard test harness does.

use std::any::Any;
use std::env;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Instant;

use futures::FutureExt;
use oarlock_built_guests::SKIPPED;

use crate::cluster::Cluster;

/// A test, with its name.
pub(crate) type Test = (&'static str, for<'a> fn(&'a mut Cluster) -> Running<'a>);

type Running<'a> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 'a>>;

/// The variable with which the tests run. Without it, each is skipped: they need root, and minutes.
const ENABLED: &str = "OARLOCK_NODE_TESTS";

/// The counts of the results.
#[derive(Default)]
struct Results {
    n_passed: usize,
    /// Names and messages.
    failed: Vec<(&'static str, String)>,
}

/// Runs the tests whose name contains one of the arguments.
#[expect(clippy::print_stdout, reason = "the output of the test harness")]
pub(crate) fn run(tests: &[Test]) -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let filters: Vec<&String> =
        arguments.iter().filter(|it| !it.starts_with("--") && *it != "terse").collect();
    let is_chosen =
        |name: &str| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()));
    let chosen: Vec<Test> = tests.iter().copied().filter(|(name, _)| is_chosen(name)).collect();
    if arguments.iter().any(|it| it == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let begun_at = Instant::now();
    let results = match (chosen.is_empty(), lack()) {
        (true, _) => Results::default(),
        (false, Some(lack)) => Results::all_failed(&chosen, &format!("{SKIPPED}{lack}")),
        (false, None) => run_on_a_node(&chosen),
    };
    let Results { n_passed, failed } = &results;
    for (name, message) in failed {
        println!("\n---- {name} stdout ----\n{message}");
    }
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {result}. {n_passed} passed; {} failed; 0 ignored; 0 measured; {} filtered out; finished in {:.2}s\n",
        failed.len(),
        tests.len() - chosen.len(),
        begun_at.elapsed().as_secs_f64()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(101) }
}

fn lack() -> Option<String> {
    if env::var_os(ENABLED).is_none() {
        return Some("tests of a real node run with `cargo xtask test --node`".to_owned());
    }
    oarlock_node::lacks()
}

fn run_on_a_node(tests: &[Test]) -> Results {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    let started = runtime.map_err(anyhow::Error::new).and_then(|runtime| {
        let cluster = runtime.block_on(Cluster::start())?;
        Ok((runtime, cluster))
    });
    let (runtime, mut cluster) = match started {
        Ok(started) => started,
        Err(error) => return Results::all_failed(tests, &format!("the cluster did not start: {error:#}")),
    };
    let mut results = Results::default();
    for &(name, test) in tests {
        let ready = async {
            cluster.until_ready().await?;
            test(&mut cluster).await
        };
        let ended = runtime.block_on(AssertUnwindSafe(ready).catch_unwind());
        let message = match ended {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{error:#}\n{}", cluster.state())),
            Err(panic) => Some(format!("{}\n{}", text_of(&*panic), cluster.state())),
        };
        results.add(name, message);
    }
    results
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

// === impl Results ===

impl Results {
    fn all_failed(tests: &[Test], message: &str) -> Self {
        let mut results = Self::default();
        tests.iter().for_each(|(name, _)| results.add(name, Some(message.to_owned())));
        results
    }

    #[expect(clippy::print_stdout, reason = "the output of the test harness")]
    fn add(&mut self, name: &'static str, message: Option<String>) {
        println!("test {name} ... {}", if message.is_none() { "ok" } else { "FAILED" });
        match message {
            None => self.n_passed += 1,
            Some(message) => self.failed.push((name, message)),
        }
    }
}
