//! `oarlock top`: what each plugin uses now, from two samples.

mod rows;

use std::io::{self, IsTerminal};

use serde::Deserialize;
use serde_json::{Value, json};
use terminal_size::{Height, Width, terminal_size};

use self::rows::{Row, compare, cores, rate, rows, table};
use super::plugin_name;
use super::printed::{INTERVAL, names, pretty, print, yaml};
use crate::args::{ListFormat, SortBy, TopArgs};
use crate::control_client::{ControlClient, Finding, connect};
use crate::failure::{Ended, Failure};
use crate::table::{cut, text_of};
use crate::view::PluginsView;

/// The size of a terminal that does not tell its own.
const SIZE: (usize, usize) = (80, 24);

pub(crate) async fn run(args: TopArgs, finding: Finding<'_>) -> Ended {
    let TopArgs { plugin, sort_by, once, output, no_headers, host } = args;
    let plugin = plugin.as_deref().map(plugin_name).transpose()?;
    let client = connect(host, finding).await?;
    show(client, plugin, Shown { sort_by, once, output, no_headers }).await
}

/// How the plugins are shown.
pub(crate) struct Shown {
    pub(crate) sort_by: SortBy,
    /// Prints one table and ends, also in a terminal.
    pub(crate) once: bool,
    pub(crate) output: Option<ListFormat>,
    pub(crate) no_headers: bool,
}

/// Shows what a host answers: one plugin, or all.
pub(crate) async fn show(mut client: ControlClient, plugin: Option<&str>, shown: Shown) -> Ended {
    let Shown { sort_by, once, output, no_headers } = shown;
    let is_live = io::stdout().is_terminal() && !once && matches!(output, None | Some(ListFormat::Wide));
    let mut before = sample(&mut client, plugin, Try::First).await?;
    let mut is_first = true;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = sample(&mut client, plugin, if is_live { Try::Again } else { Try::First }).await?;
        if now.started != before.started {
            // Another host counts from its own start: its rates need a second sample of it.
            before = now;
            continue;
        }
        let mut rows = rows(&before, &now);
        rows.sort_by(|a, b| compare(b, a, sort_by).then_with(|| a.name.cmp(&b.name)));
        before = now;
        match output {
            Some(format @ (ListFormat::Json | ListFormat::Yaml)) => {
                let plugins: Vec<_> = rows.iter().map(Row::json).collect();
                let page = json!({ "plugins": plugins });
                return print(&if format == ListFormat::Json { pretty(&page)? } else { yaml(&page)? });
            }
            Some(ListFormat::Name) => {
                let rows: Vec<_> = rows.iter().map(|row| format!("plugin/{}", row.name)).collect();
                return print(&text_of(names(&rows)));
            }
            Some(ListFormat::Wide) | None => {}
        }
        let mut table = table(&rows, output == Some(ListFormat::Wide));
        if client.names().is_all() {
            table = table.with_namespaces();
        }
        let lines = table.lines(!no_headers);
        if !is_live {
            if rows.is_empty() {
                eprintln!("the host has no plugins");
                return Ok(());
            }
            return print(&crate::table::text_of(lines));
        }
        let (width, height) =
            terminal_size().map_or(SIZE, |(Width(width), Height(height))| (width.into(), height.into()));
        print(&screen(&lines, &head(&rows, sort_by), (width, height), is_first))?;
        is_first = false;
    }
}

/// Whether a host that does not answer is an error, or the next one is waited for.
#[derive(Clone, Copy)]
enum Try {
    First,
    Again,
}

async fn sample(
    client: &mut ControlClient,
    plugin: Option<&str>,
    which: Try,
) -> Result<PluginsView, Failure> {
    let path = client.names().usage(plugin);
    let page: Value = match which {
        Try::First => client.get(&path).await?,
        Try::Again => client.get_again(&path).await?,
    };
    let mut view = PluginsView::deserialize(page).map_err(Failure::running)?;
    for it in &mut view.plugins {
        it.name = client.names().shown(&it.name);
    }
    if let Some(name) = plugin {
        view.plugins.retain(|it| it.name == name);
        if view.plugins.is_empty() {
            // The host names the plugins that there are.
            let _: Value = client.get(&format!("/v1/plugins/{name}")).await?;
        }
    }
    Ok(view)
}

fn head(rows: &[Row], sort_by: SortBy) -> String {
    let cpu: f64 = rows.iter().map(Row::cores).sum();
    let calls: f64 = rows.iter().map(|row| row.calls).sum();
    let by = match sort_by {
        SortBy::Cpu => "CPU",
        SortBy::Calls => "calls",
        SortBy::P99 => "p99",
        SortBy::Memory => "memory",
        SortBy::Backlog => "backlog",
        SortBy::Errors => "errors",
    };
    let (n, cpu, calls) = (rows.len(), cores(cpu), rate(calls));
    format!("{n} plugins, {cpu} CPU, {calls} calls/s, sorted by {by}, Ctrl-C ends")
}

/// Returns the text that draws a screen over the one before.
fn screen(lines: &[String], head: &str, (width, height): (usize, usize), is_first: bool) -> String {
    let mut text = String::from(if is_first { "\u{1b}[2J\u{1b}[H" } else { "\u{1b}[H" });
    let lines = std::iter::once(head).chain(lines.iter().map(String::as_str));
    // The last line stays empty, so that nothing scrolls.
    for line in lines.take(height.saturating_sub(1).max(1)) {
        text.push_str(cut(line, width));
        text.push_str("\u{1b}[K\n");
    }
    text.push_str("\u{1b}[J");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_fits_a_terminal_of_40_columns_and_3_lines() {
        let lines: Vec<_> = (0..9).map(|n| format!("{n} {}", "x".repeat(60))).collect();
        let drawn = screen(&lines, &"h".repeat(60), (40, 3), false);
        let rows: Vec<_> = drawn.trim_start_matches("\u{1b}[H").split("\u{1b}[K\n").collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[..2].iter().all(|row| row.len() == 40), "{rows:?}");
        assert_eq!(rows[2], "\u{1b}[J");
    }
}
