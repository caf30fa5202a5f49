//! `oarlock top`: what each plugin uses now, from two samples.

mod rows;

use std::io::{self, IsTerminal};

use oarlock_controller::report::{Counted, Timestamp};
use oarlock_guest_build::progress;
use serde::Deserialize;
use serde_json::{Value, json};
use terminal_size::{Height, Width, terminal_size};

use self::rows::{Row, compare, cores, rate, rows, table};
use super::plugin_name;
use super::printed::{DOCUMENT_END, INTERVAL, line, names, pretty, print, yaml};
use crate::args::{ListFormat, SortBy, TopArgs};
use crate::control_client::{ControlClient, Finding, connect};
use crate::failure::{Ended, Failure};
use crate::table::{Table, Widths, cut, text_of};
use crate::view::PluginsView;

/// The size of a terminal that does not tell its own.
const SIZE: (usize, usize) = (80, 24);

pub(crate) async fn run(args: TopArgs, finding: Finding<'_>) -> Ended {
    let TopArgs { plugin, sort_by, once, watch, output, no_headers, host } = args;
    let plugin = plugin.as_deref().map(plugin_name).transpose()?;
    let repeat = match (watch, once) {
        (true, _) => Repeat::Always,
        (false, true) => Repeat::Never,
        (false, false) => Repeat::InTerminal,
    };
    let client = connect(host, finding).await?;
    show(client, plugin, Shown { sort_by, repeat, output, no_headers }).await
}

/// How the plugins are shown.
pub(crate) struct Shown {
    pub(crate) sort_by: SortBy,
    pub(crate) repeat: Repeat,
    pub(crate) output: Option<ListFormat>,
    pub(crate) no_headers: bool,
}

/// Whether further samples follow the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Never,
    /// In a terminal, a table is drawn again for each sample.
    InTerminal,
    /// In a terminal, a table is drawn again for each sample. Elsewhere, and in other formats, samples are
    /// printed one after the other.
    Always,
}

/// Prints samples one after the other.
struct SamplePrinter {
    output: Option<ListFormat>,
    /// Whether the next row needs headers above it.
    needs_headers: bool,
    with_namespaces: bool,
    is_watched: bool,
    widths: Widths,
    is_first: bool,
}

/// Shows what a host answers: one plugin, or all.
pub(crate) async fn show(mut client: ControlClient, plugin: Option<&str>, shown: Shown) -> Ended {
    let Shown { sort_by, repeat, output, no_headers } = shown;
    let is_table = matches!(output, None | Some(ListFormat::Wide));
    let is_live = is_table && repeat != Repeat::Never && io::stdout().is_terminal();
    let is_watched = is_live || repeat == Repeat::Always;
    let with_namespaces = client.names().is_all();
    let mut printer = SamplePrinter {
        output,
        needs_headers: !no_headers,
        with_namespaces,
        is_watched,
        widths: Widths::default(),
        is_first: true,
    };
    let mut before = sample(&mut client, plugin, Try::First).await?;
    let mut is_first = true;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = sample(&mut client, plugin, if is_watched { Try::Again } else { Try::First }).await?;
        if now.started != before.started {
            // Another host counts from its own start: its rates need a second sample of it.
            before = now;
            continue;
        }
        let mut rows = rows(&before, &now);
        rows.sort_by(|a, b| compare(b, a, sort_by).then_with(|| a.name.cmp(&b.name)));
        before = now;
        if !is_live {
            print(&printer.text(&rows)?)?;
            if !is_watched {
                return Ok(());
            }
            continue;
        }
        let lines = printer.table(&rows).lines(!no_headers);
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
    let plugins = Counted(n, "plugin");
    format!("{plugins}, {cpu} CPU, {calls} calls/s, sorted by {by}, Ctrl-C ends")
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

// === impl SamplePrinter ===

impl SamplePrinter {
    /// Returns the text of the next sample.
    fn text(&mut self, rows: &[Row]) -> Result<String, Failure> {
        let is_first = std::mem::take(&mut self.is_first);
        let page = || {
            let plugins: Vec<_> = rows.iter().map(Row::json).collect();
            json!({"time": Timestamp::now(), "plugins": plugins})
        };
        match self.output {
            Some(ListFormat::Json) if self.is_watched => line(&page()),
            Some(ListFormat::Json) => pretty(&page()),
            Some(ListFormat::Yaml) if is_first => yaml(&page()),
            Some(ListFormat::Yaml) => Ok(format!("{DOCUMENT_END}\n{}", yaml(&page())?)),
            Some(ListFormat::Name) => {
                let rows: Vec<_> = rows.iter().map(|row| format!("plugin/{}", row.name)).collect();
                Ok(text_of(names(&rows)))
            }
            Some(ListFormat::Wide) | None => {
                if rows.is_empty() && is_first {
                    progress::say("the host has no plugins");
                }
                let with_headers = self.needs_headers && !rows.is_empty();
                self.needs_headers &= !with_headers;
                Ok(text_of(self.table(rows).lines_in(&mut self.widths, with_headers)))
            }
        }
    }

    fn table(&self, rows: &[Row]) -> Table {
        let table = table(rows, self.output == Some(ListFormat::Wide));
        if self.with_namespaces { table.with_namespaces() } else { table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{PluginView, UsageView};

    /// Returns what is printed for two samples in which plugin `a` made 5 calls, and then 20,000.
    fn printed(output: Option<ListFormat>, is_watched: bool) -> [String; 2] {
        let view = |calls: u64| PluginsView {
            sampled_us: 1_000_000,
            plugins: vec![PluginView {
                name: "a".to_owned(),
                usage: UsageView { calls, ..UsageView::default() },
                ..PluginView::default()
            }],
            ..PluginsView::default()
        };
        let mut printer = SamplePrinter {
            output,
            needs_headers: true,
            with_namespaces: false,
            is_watched,
            widths: Widths::default(),
            is_first: true,
        };
        [5, 20_000].map(|calls| printer.text(&rows(&PluginsView::default(), &view(calls))).unwrap())
    }

    #[test]
    fn each_watched_sample_is_a_line_of_json() {
        for (text, calls) in printed(Some(ListFormat::Json), true).into_iter().zip([5.0, 20_000.0]) {
            assert_eq!((text.matches('\n').count(), text.ends_with('\n')), (1, true), "{text}");
            let sample: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(sample["plugins"][0]["calls-per-second"], calls);
            assert!(sample["time"].as_str().unwrap().ends_with('Z'), "{sample}");
        }
        let [once, _] = printed(Some(ListFormat::Json), false);
        assert!(once.starts_with("{\n"), "{once}");
    }

    #[test]
    fn each_watched_sample_is_a_document_of_yaml() {
        let text = printed(Some(ListFormat::Yaml), true).concat();
        let documents: Vec<_> = text.split("---\n").collect();
        assert_eq!(documents.len(), 2, "{text}");
        assert!(documents.iter().all(|it| it.contains("name: a\n")), "{text}");
    }

    #[test]
    fn watched_rows_follow_each_other_under_the_headers() {
        insta::assert_snapshot!(printed(None, true).concat(), @"
        NAME   CPU(cores)   CALLS/S   P99   MEMORY   BACKLOG   OLDEST   READS/S   WRITES/S   ERRORS   RESTARTS
        a      0m           5.0       -     0        0         -        0         0          0        0
        a      0m           20000     -     0        0         -        0         0          0        0
        ");
    }

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
