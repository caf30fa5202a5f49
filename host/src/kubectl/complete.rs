//! Completions for `kubectl oarlock`. The completion of kubectl runs `kubectl_complete-oarlock` with the
//! words after `oarlock`, the last of which is incomplete. It reads one completion per line, with a
//! description behind a tab, and `:NUMBER` in the last line: what the shell does beside. 4 means: it proposes
//! no files.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser};
use kube::Api;
use kube::api::ListParams;

use super::{ApiServer, Place};
use crate::args::{ClusterChoice, Environment, KubectlArgs, without_empty_variables};
use crate::commands::printed::print;

/// What the shell does: nothing beside, or complete files.
const NO_FILES: u8 = 4;
const FILES: u8 = 0;

/// How long the API server may take to answer: a user waits at the prompt.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// What can be completed at a place.
#[derive(Debug, PartialEq, Eq)]
enum Completed {
    /// These, with descriptions.
    Words(Vec<(String, String)>),
    Plugins {
        is_cluster: bool,
    },
    Namespaces,
    Files,
    Nothing,
}

/// The part of the words that says which cluster and namespace are meant.
#[derive(Debug, Parser)]
#[command(ignore_errors = true, disable_help_flag = true)]
struct Meant {
    #[command(flatten)]
    cluster: ClusterChoice,
    #[command(flatten)]
    environment: Environment,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _others: Vec<OsString>,
}

/// Prints the completions.
pub(crate) async fn run(arguments: Vec<OsString>) -> ExitCode {
    let words: Vec<String> = arguments.iter().skip(1).map(|it| it.to_string_lossy().into_owned()).collect();
    let (done, last) = match words.split_last() {
        Some((last, done)) => (done, last.as_str()),
        None => (&[][..], ""),
    };
    let mut command = KubectlArgs::command();
    command.build();
    let (lines, directive) = match completed(&command, done, last) {
        Completed::Words(words) => {
            (words.into_iter().map(|(word, about)| format!("{word}\t{about}")).collect(), NO_FILES)
        }
        Completed::Plugins { is_cluster } => (names(done, Some(is_cluster)).await, NO_FILES),
        Completed::Namespaces => (names(done, None).await, NO_FILES),
        Completed::Files => (Vec::new(), FILES),
        Completed::Nothing => (Vec::new(), NO_FILES),
    };
    let lines = lines.into_iter().filter(|it| it.starts_with(last)).map(|it| it + "\n");
    match print(&format!("{}:{directive}\n", lines.collect::<String>())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit_code(),
    }
}

/// Returns what can be completed after these words.
fn completed(root: &Command, done: &[String], last: &str) -> Completed {
    let mut command = root;
    let mut n_positional = 0;
    let mut value_of: Option<&Arg> = None;
    for word in done {
        if value_of.take().is_some() {
            continue;
        }
        match word.strip_prefix('-') {
            Some(_) => value_of = flag(command, word).filter(|it| takes_value(it) && !word.contains('=')),
            None => match command.find_subcommand(word) {
                Some(found) => command = found,
                None => n_positional += 1,
            },
        }
    }
    if let Some(argument) = value_of {
        return values(argument);
    }
    if last.starts_with('-') {
        let shown = command.get_arguments().filter(|it| !it.is_hide_set());
        let long = shown.filter_map(|it| Some((format!("--{}", it.get_long()?), about(it.get_help()))));
        return Completed::Words(long.collect());
    }
    if command.has_subcommands() {
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        return Completed::Words(shown.map(|it| (it.get_name().to_owned(), about(it.get_about()))).collect());
    }
    let is_plugin = command.get_positionals().nth(n_positional).is_some_and(|it| it.get_id() == "plugin");
    match is_plugin {
        true => Completed::Plugins { is_cluster: done.iter().any(|it| it == "--cluster") },
        false => Completed::Nothing,
    }
}

fn flag<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or(word);
    command.get_arguments().find(|it| match name.strip_prefix("--") {
        Some(long) => it.get_long() == Some(long),
        None => {
            it.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.to_string().as_str()))
        }
    })
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

fn values(argument: &Arg) -> Completed {
    let known = argument.get_possible_values();
    match argument.get_id().as_str() {
        "namespace" | "host_namespace" => Completed::Namespaces,
        "kubeconfig" | "certificate_authority" => Completed::Files,
        _ if known.is_empty() => Completed::Nothing,
        _ => Completed::Words(
            known.iter().map(|it| (it.get_name().to_owned(), about(it.get_help()))).collect(),
        ),
    }
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// Returns the names of the plugins of the place that the words mean, or of the namespaces. Without an answer
/// of the API server there are none.
async fn names(done: &[String], is_cluster: Option<bool>) -> Vec<String> {
    let listed = async {
        let words = std::iter::once("kubectl oarlock".to_owned()).chain(done.iter().cloned());
        // The flags may be behind other words, which are left out.
        let meant = without_empty_variables(Meant::command()).try_get_matches_from(cluster_words(words));
        let Meant { cluster, environment, _others: _ } = Meant::from_arg_matches(&meant.ok()?).ok()?;
        let server = ApiServer::connect(&cluster, &environment).await.ok()?;
        let params = ListParams::default();
        let names: Vec<Option<String>> = match is_cluster {
            Some(is_cluster) => {
                let place: Place = server.place(false, is_cluster);
                let objects = server.objects(&place).list_metadata(&params).await.ok()?;
                objects.items.into_iter().map(|it| it.metadata.name).collect()
            }
            None => {
                let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(server.client.clone());
                api.list_metadata(&params).await.ok()?.items.into_iter().map(|it| it.metadata.name).collect()
            }
        };
        Some(names.into_iter().flatten().collect())
    };
    tokio::time::timeout(ANSWER_LIMIT, listed).await.ok().flatten().unwrap_or_default()
}

/// Returns the program and those words that choose the cluster and the namespace.
fn cluster_words(words: impl Iterator<Item = String>) -> Vec<String> {
    const FLAGS: [&str; 4] = ["--kubeconfig", "--context", "--namespace", "-n"];
    let mut words = words;
    let mut kept: Vec<String> = words.next().into_iter().collect();
    while let Some(word) = words.next() {
        if FLAGS.contains(&word.as_str()) {
            kept.push(word);
            kept.extend(words.next());
        } else if FLAGS.iter().any(|it| word.strip_prefix(it).is_some_and(|rest| rest.starts_with('='))) {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(line: &str) -> Completed {
        let mut command = KubectlArgs::command();
        command.build();
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (last, done) = words.split_last().unwrap();
        completed(&command, done, last)
    }

    fn words(line: &str) -> Vec<String> {
        match complete(line) {
            Completed::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn commands_flags_values_and_names_are_completed() {
        for command in
            ["plugins", "top", "logs", "events", "dead-letters", "redeliver", "rollback", "suspend", "resume"]
        {
            assert!(words("").contains(&command.to_owned()), "{command}");
            assert!(words("-n team-a ").contains(&command.to_owned()), "{command}");
        }
        assert!(words("logs --").contains(&"--follow".to_owned()));
        assert!(words("logs --").contains(&"--namespace".to_owned()));
        assert!(!words("logs --").contains(&"--home".to_owned()));
        assert_eq!(words("plugins -o "), ["json", "yaml", "wide", "name"]);
        assert_eq!(complete("logs -f "), Completed::Plugins { is_cluster: false });
        assert_eq!(complete("suspend --cluster "), Completed::Plugins { is_cluster: true });
        assert_eq!(complete("logs mirror "), Completed::Nothing);
        assert_eq!(complete("logs -n "), Completed::Namespaces);
        assert_eq!(complete("top --certificate-authority "), Completed::Files);
    }

    #[test]
    fn the_cluster_and_the_namespace_are_found_between_other_words() {
        let words = "x logs -f -n team-a mirror --context=c --tail 3".split(' ').map(str::to_owned);
        assert_eq!(cluster_words(words), ["x", "-n", "team-a", "--context=c"]);
    }
}
