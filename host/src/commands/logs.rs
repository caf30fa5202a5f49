//! `oarlock logs`: the newest lines of a plugin's log, and the events of the host about it.

use std::time::Duration;

use http_body_util::BodyExt;
use oarlock_guest_build::progress;
use tokio::time::{Instant, sleep, timeout};

use super::plugin_name;
use super::printed::print_bytes;
use crate::args::{LinesChoice, LogFormat, LogsArgs};
use crate::control_client::{AGAIN_HINT, ControlClient, Finding, RETRY_PAUSE, TAKEOVER_LIMIT, connect};
use crate::failure::{Ended, Failure};

/// How long a connection may be without a line. The host ends each after 300 s, so one that lasts longer has
/// no host any more.
const STREAM_LIMIT: Duration = Duration::from_secs(330);

/// The longest line that is waited for. The host's lines are shorter.
const LONGEST_LINE: usize = 1 << 20;

/// Takes numbered lines from a body, and knows the number of the next one.
#[derive(Debug, Default)]
struct NumberedLines {
    incomplete: Vec<u8>,
    next: Option<u64>,
}

pub(crate) async fn run(args: LogsArgs, finding: Finding<'_>) -> Ended {
    let LogsArgs { plugin, lines, host } = args;
    let plugin = plugin_name(&plugin)?;
    let mut client = connect(host, finding).await?;
    let path = format!("{}?{}", client.names().operation(plugin, "lines"), query(&lines));
    let mut body = client.stream(&path).await?.into_body();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(ended()) };
        if let Some(lines) = frame.data_ref() {
            print_bytes(lines)?;
        }
    }
    if lines.follow {
        progress::say(format!(
            "note: no further lines: the host stopped, or unloaded plugin {plugin}. `oarlock plugins` shows \
             whether it is loaded"
        ));
    }
    Ok(())
}

/// Prints the lines of a plugin in a cluster. With `--follow` it goes on after a connection has ended, with
/// the host that leads then. The host ends connections after some minutes, so that a right that was taken
/// away ends too.
pub(crate) async fn follow_leader(mut client: ControlClient, plugin: &str, lines: LinesChoice) -> Ended {
    let path = client.names().operation(plugin, "logs");
    let began_at = Instant::now();
    let mut log: Option<String> = None;
    let mut numbered = NumberedLines::default();
    let mut lost: Option<Instant> = None;
    loop {
        let from = log.as_ref().zip(numbered.next).map(|(log, next)| format!("&from={log}-{next}"));
        // Later connections ask for all since the first one: `from` says where to go on in the same log.
        let (tail, more) = match log {
            None => (lines.tail, Duration::ZERO),
            Some(_) => (None, began_at.elapsed() + Duration::from_secs(1)),
        };
        let since = lines.since.map(|since| since + more);
        let lines_now = LinesChoice { tail, since, ..lines };
        let asked = format!("{path}?numbered=true&{}{}", query(&lines_now), from.unwrap_or_default());
        let answer = match client.stream(&asked).await {
            Ok(answer) => answer,
            Err(failure) => {
                match lost {
                    Some(since) if !client.is_refused() && since.elapsed() < TAKEOVER_LIMIT => {
                        sleep(RETRY_PAUSE).await;
                        // The next request fails with the same error.
                        let _ = client.reconnect().await;
                        continue;
                    }
                    Some(_) if client.is_refused() => {
                        return Err(failure.context("the connection ended, and the host refuses another one"));
                    }
                    Some(_) => {
                        let limit = TAKEOVER_LIMIT.as_secs();
                        let context = format!("no host answered for {limit} s after the last one stopped");
                        return Err(failure.context(context));
                    }
                    None => return Err(failure),
                }
            }
        };
        let header = |name| answer.headers().get(name).and_then(|it| it.to_str().ok());
        let now = header("oarlock-log").map(str::to_owned);
        // A connection that ends before its first line is continued too.
        let first = header("oarlock-first-line").and_then(|it| it.parse().ok());
        numbered.next = first.or(numbered.next.filter(|_| log == now));
        if log.is_some() && log != now {
            progress::say("note: another host leads, or the plugin was loaded again: its lines follow");
        }
        log = now;
        numbered.incomplete.clear();
        let mut body = answer.into_body();
        let connected_at = Instant::now();
        loop {
            let frame = match timeout(STREAM_LIMIT, body.frame()).await {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) | Err(_) if lines.follow => break,
                Ok(Some(Err(_))) | Err(_) => {
                    return Err(ended());
                }
            };
            if let Some(data) = frame.data_ref() {
                print_bytes(&numbered.take(data)?)?;
                lost = None;
            }
        }
        if !lines.follow {
            return Ok(());
        }
        if connected_at.elapsed() > RETRY_PAUSE * 2 {
            lost = None;
        }
        lost.get_or_insert_with(Instant::now);
        // The host that has ended its answer may accept another request, and end that too.
        sleep(RETRY_PAUSE).await;
        let _ = client.reconnect().await;
    }
}

/// Returns the failure of an answer that is not complete.
fn ended() -> Failure {
    Failure::running(anyhow::anyhow!("the connection to the host ended before the last line"))
        .hint(AGAIN_HINT)
}

fn query(lines: &LinesChoice) -> String {
    let LinesChoice { follow, tail, since, output } = lines;
    let json = *output == Some(LogFormat::Json);
    let mut query = format!("follow={follow}&json={json}");
    // -1 means all, as in kubectl.
    if let Some(tail) = tail.filter(|tail| *tail >= 0) {
        query += &format!("&tail={tail}");
    }
    if let Some(since) = since {
        query += &format!("&since={}", since.as_secs());
    }
    query
}

// === impl NumberedLines ===

impl NumberedLines {
    /// Returns the complete lines so far, without their numbers.
    fn take(&mut self, data: &[u8]) -> Result<Vec<u8>, Failure> {
        self.incomplete.extend_from_slice(data);
        let Some(end) = self.incomplete.iter().rposition(|it| *it == b'\n') else {
            let is_too_long = self.incomplete.len() > LONGEST_LINE;
            let long = || {
                Failure::running(anyhow::anyhow!("the host sent a line longer than 1 MiB"))
                    .hint("use an oarlock of the host's version")
            };
            return if is_too_long { Err(long()) } else { Ok(Vec::new()) };
        };
        let rest = self.incomplete.split_off(end + 1);
        let complete = std::mem::replace(&mut self.incomplete, rest);
        let mut lines = Vec::with_capacity(complete.len());
        for line in complete.split_inclusive(|it| *it == b'\n') {
            let space = line.iter().position(|it| *it == b' ').unwrap_or(0);
            let number = std::str::from_utf8(&line[..space]).ok().and_then(|it| it.parse::<u64>().ok());
            match number {
                Some(number) => {
                    self.next = Some(number.saturating_add(1));
                    lines.extend_from_slice(&line[space + 1..]);
                }
                None => lines.extend_from_slice(line),
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_of_minus_one_asks_for_all_lines_and_an_age_may_have_days() {
        #[derive(clap::Parser)]
        struct Parsed {
            #[command(flatten)]
            lines: LinesChoice,
        }
        let asked = |words: &str| {
            let parsed = <Parsed as clap::Parser>::try_parse_from(format!("logs {words}").split_whitespace());
            parsed.map(|it| query(&it.lines)).map_err(|error| error.to_string())
        };
        let all = "follow=false&json=false".to_owned();
        assert_eq!(asked(""), Ok(all.clone()));
        assert_eq!(asked("--tail -1"), Ok(all.clone()));
        assert_eq!(asked("--tail=-1"), Ok(all.clone()));
        assert_eq!(asked("--tail 0"), Ok(format!("{all}&tail=0")));
        assert_eq!(asked("--tail 20 --since 1d12h"), Ok(format!("{all}&tail=20&since=129600")));
        assert!(asked("--tail -2").is_err());
        assert!(asked("--tail -f").is_err());
    }

    #[test]
    fn lines_are_printed_whole_and_without_their_numbers() {
        let mut lines = NumberedLines::default();
        let take = |lines: &mut NumberedLines, text: &str| {
            String::from_utf8(lines.take(text.as_bytes()).unwrap()).unwrap()
        };
        assert_eq!(take(&mut lines, "7 a b\n8 c"), "a b\n");
        assert_eq!(lines.next, Some(8));
        assert_eq!(take(&mut lines, " d\n"), "c d\n");
        assert_eq!((take(&mut lines, "9"), lines.next), (String::new(), Some(9)));
        assert_eq!(take(&mut lines, " \n"), "\n");
        assert!(lines.take(&vec![b'x'; LONGEST_LINE + 1]).is_err());
    }
}
