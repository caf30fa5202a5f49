//! The commands and snippets of README.md and docs/: they run, and print what the page says.

mod errors;
mod hints;
mod page;
mod reasons;
mod session;

use std::fs;
use std::process::Command;

use anyhow::{Context, ensure};
use oarlock_built_guests::{component as built, missing, skip_rest};
use oarlock_tests::host_process::checkout;

use self::page::{Block, Test, blocks, not_from, pages};
use self::session::Session;
use crate::command::{oarlock, written};

/// The languages of `oarlock plugin new --lang`.
const LANGUAGES: [&str; 6] = ["rust", "ts", "js", "python", "go", "c"];

/// Returns the blocks of all pages with one of these tests.
fn all(is_wanted: impl Fn(&Test) -> bool) -> anyhow::Result<Vec<Block>> {
    let mut found = Vec::new();
    for page in pages()? {
        found.extend(blocks(&page)?.into_iter().filter(|block| is_wanted(&block.test)));
    }
    ensure!(!found.is_empty(), "no page has such a block");
    Ok(found)
}

#[test]
fn every_snippet_is_tested_or_says_why_not() -> anyhow::Result<()> {
    for page in pages()? {
        blocks(&page)?;
    }
    Ok(())
}

#[test]
fn snippets_are_what_the_files_have() -> anyhow::Result<()> {
    let mut faults = Vec::new();
    for Block { place, text, test } in all(|test| matches!(test, Test::From(_)))? {
        let Test::From(file) = test else { continue };
        let whole = fs::read_to_string(checkout().join(&file))
            .with_context(|| format!("{place}: {}", file.display()))?;
        if let Some(run) = not_from(&text, &whole) {
            faults.push(format!("{place}: not in {}, or in another order:\n{run}", file.display()));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// Makes the folder of a plugin whose component is that of mirror.
fn plugin(file: &str, component: &str) -> anyhow::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    fs::copy(built("mirror"), folder.path().join(component))?;
    fs::write(folder.path().join("plugin.yaml"), file)?;
    Ok(folder)
}

#[test]
fn plugin_files_are_valid() -> anyhow::Result<()> {
    for Block { place, text, .. } in all(|test| *test == Test::PluginFile)? {
        let folder = plugin(&text, "mirror.wasm")?;
        // The shadow of a page.
        fs::copy(built("mirror"), folder.path().join("mirror-next.wasm"))?;
        written(folder.path(), &["plugin", "check"]).context(place)?;
    }
    Ok(())
}

/// The cases are of other plugins, so they may fail, but each is read and run.
#[test]
fn cases_are_valid() -> anyhow::Result<()> {
    let file = "{name: a, component: a.wasm, serviceAccount: {namespace: default, name: a}}";
    for Block { place, text, .. } in all(|test| *test == Test::Case)? {
        let folder = plugin(file, "a.wasm")?;
        fs::create_dir(folder.path().join("cases"))?;
        fs::write(folder.path().join("cases/a.yaml"), text)?;
        let output = oarlock(folder.path(), &["plugin", "test"])?;
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(matches!(output.status.code(), Some(0 | 1)), "{place}: {printed}{errors}");
        ensure!(printed.contains("a: 1 case"), "{place}: {printed}{errors}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_each_page_do_what_it_says() -> anyhow::Result<()> {
    let is_run =
        |block: &Block| matches!(block.test, Test::Run | Test::RunAndFail | Test::Start | Test::Printed);
    let has_kubectl = Command::new("kubectl").arg("version").arg("--client").output().is_ok();
    let mut skipped = vec![];
    for page in pages()? {
        let blocks: Vec<_> = blocks(&page)?.into_iter().filter(is_run).collect();
        if blocks.is_empty() {
            continue;
        }
        let has = |text: &str| blocks.iter().any(|block| block.text.contains(text));
        let lack = match !has_kubectl && has("kubectl") {
            true => Some("kubectl is missing".to_owned()),
            false => LANGUAGES.iter().filter(|it| has(&format!("--lang {it}"))).find_map(|it| missing(it)),
        };
        if let Some(lack) = lack {
            skipped.push(format!("the commands of {}: {lack}", page.display()));
            continue;
        }
        let mut session = Session::begin()?;
        for block in &blocks {
            println!("{}", block.place);
            match block.test {
                Test::Run => session.run(block, true)?,
                Test::RunAndFail => session.run(block, false)?,
                Test::Start => session.start(block)?,
                _ => session.printed(block).await?,
            }
        }
    }
    skip_rest(&skipped);
    Ok(())
}
