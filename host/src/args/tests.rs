use clap::CommandFactory;

use super::*;

fn help(path: &[&str]) -> String {
    let mut command = Args::command();
    // The text must not depend on the environment.
    command.build();
    let mut found = &mut command;
    for name in path {
        found = found.find_subcommand_mut(name).unwrap();
    }
    found.render_help().to_string()
}

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn languages_have_their_full_names_too() {
    for (name, short) in [("typescript", "ts"), ("javascript", "js"), ("golang", "go")] {
        let parsed =
            Args::command().try_get_matches_from(["oarlock", "plugin", "new", "a", "--language", name]);
        let parsed = parsed.unwrap();
        let (_, plugin) = parsed.subcommand().unwrap();
        let lang = plugin.subcommand().unwrap().1.get_one::<plugin::Lang>("lang").copied().unwrap();
        assert_eq!(lang.0.short_name(), short);
    }
}

#[test]
fn a_filter_of_the_log_that_cannot_be_parsed_is_refused() {
    let parsed = |filter| Args::command().try_get_matches_from(["oarlock", "--log", filter, "plugins"]);
    assert!(parsed("oarlock=debug,kube=info").is_ok());
    let refused = parsed("oarlock=very-much").unwrap_err().to_string();
    assert!(refused.contains("invalid value 'oarlock=very-much' for '--log <FILTER>'"), "{refused}");
}

#[test]
fn help_lists_commands_and_arguments() {
    insta::assert_snapshot!(help(&[]), @"
    Runs Kubernetes controllers as WebAssembly plugins in one process

    Usage: oarlock [OPTIONS] <COMMAND>

    Commands:
      run           Runs plugins against a cluster
      dev           Starts an API server on this machine and runs plugins against it
      install       Prints the objects that install a host in a cluster, for `kubectl apply -f -`
      rbac          Prints the rights that plugins and the host need, as YAML for `kubectl apply -f -`
      plugin        Makes, builds, tests and checks plugins
      plugins       Lists the plugins of a running host, or describes one
      top           Shows what the plugins of a running host use: CPU, calls, memory, backlog
      logs          Prints the newest log lines of a plugin, and the host's events about it
      dead-letters  Lists the objects and keys that plugins failed to handle, and that are parked
      redeliver     Makes the host try parked objects or keys again, now, or deliver all objects again
      suspend       Stops the calls of a plugin. Its notifications wait
      resume        Calls a suspended plugin again
      rollback      Goes back to the newest version that passed its probation, else to the one before
      completions   Prints the completions of this command line for a shell
      help          Print this message or the help of the given subcommand(s)

    Options:
          --log <FILTER>        The host's own log on standard error: a level, or targets such as
                                `oarlock=debug,kube=info` [env: OARLOCK_LOG] [default: warn]
          --cache-dir <FOLDER>  The folder for compiled plugins, which only this user can write.
                                Otherwise `oarlock` in the user's cache folder, if it is writable [env:
                                OARLOCK_CACHE_DIR]
          --state-dir <FOLDER>  The folder for what a host keeps over a restart, which only this user
                                can write: the last good version of each plugin, and the versions that
                                are not tried again. Otherwise `oarlock` in the user's folder for state,
                                if it is writable; `dev` uses a temporary one [env: OARLOCK_STATE_DIR]
      -h, --help                Print help (see more with '--help')
      -V, --version             Print version
    ");
    insta::assert_snapshot!(help(&["run"]), @"
    Runs plugins against a cluster

    Usage: oarlock run [OPTIONS]

    Options:
          --log <FILTER>              The host's own log on standard error: a level, or targets such as
                                      `oarlock=debug,kube=info` [env: OARLOCK_LOG] [default: warn]
          --plugins <PATH>            A folder of plugin files, the folder of one plugin, or a plugin
                                      file. May be given several times. The host reloads changed plugins
          --cache-dir <FOLDER>        The folder for compiled plugins, which only this user can write.
                                      Otherwise `oarlock` in the user's cache folder, if it is writable
                                      [env: OARLOCK_CACHE_DIR]
          --drain-timeout <DURATION>  How long the calls in progress may take when the process is asked
                                      to end. Keep it below the terminationGracePeriodSeconds of the Pod
                                      [default: 20s]
          --state-dir <FOLDER>        The folder for what a host keeps over a restart, which only this
                                      user can write: the last good version of each plugin, and the
                                      versions that are not tried again. Otherwise `oarlock` in the
                                      user's folder for state, if it is writable; `dev` uses a temporary
                                      one [env: OARLOCK_STATE_DIR]
          --watch-plugins             Runs the Plugin and ClusterPlugin objects of the cluster
          --kubeconfig <FILE>         The kubeconfig to use. Otherwise `~/.kube/config`, or without such
                                      a file the ServiceAccount of this Pod [env: KUBECONFIG]
          --context <NAME>            The kubeconfig's context to use instead of its current one
          --admin-addr <ADDRESS>      The address that serves /livez, /readyz, /metrics and /plugins. On
                                      a loopback address without --admin-cert-file: plain HTTP, for
                                      every user of the machine. Otherwise HTTPS, and all but /livez and
                                      /readyz need a bearer token of a user whom Kubernetes allows `get`
                                      on the path
          --admin-cert-file <FILE>    The certificate for that address, in PEM, with those of its
                                      authorities; read again when it changes. Otherwise the host makes
                                      one, which clients cannot verify
          --admin-key-file <FILE>     The private key of that certificate, in PEM
          --output <OUTPUT>           The format of events on standard output, and of the host's own log
                                      on standard error [default: human] [possible values: human, json]
          --level <LEVEL>             The lowest level of printed events: trace, debug (every
                                      notification), info, warn or error [default: info]
      -h, --help                      Print help (see more with '--help')

    Record:
          --record <FILE>         Records all calls of the plugin, and everything that crosses its
                                  border, for `oarlock plugin replay`: a file for one plugin, or a
                                  folder (`records/`) or a pattern (`records/{plugin}.record`) for
                                  several. An existing file is not overwritten: `a.2.record` is next to
                                  `a.record`
          --record-plugin <NAME>  The only plugin to record
          --record-limit <SIZE>   The maximum size of all files of a plugin together. Its record ends
                                  there; the plugin continues [default: 256Mi]
          --record-secrets        Records values of Secrets as they are, and not pseudonyms of the same
                                  shape

    Traces:
          --otlp-endpoint <URL>
              Exports traces of sampled events to the OpenTelemetry collector at this URL, such as
              http://collector:4318, with OTLP over HTTP. Otherwise that of
              OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT. Without any of them
              there are no traces
          --trace-ratio <RATIO>
              The share of the watch events that are traced, from 0 to 1 [env: OTEL_TRACES_SAMPLER_ARG]
              [default: 0.01]
          --otlp-certificate-authority <FILE>
              A PEM file with certificate authorities that an https endpoint may have, beside those of
              the system [env: OTEL_EXPORTER_OTLP_CERTIFICATE]

    Caches:
          --max-informers <N>
              The maximum number of watched resources [default: 256]
          --max-objects <N>
              The maximum number of cached objects [default: 2000000]
          --max-cache-bytes <SIZE>
              The maximum memory of cached objects, such as 512Mi. The host itself and its plugins need
              more [default: 1Gi]
          --cache-drop <RESOURCE=POINTER,…>
              Fields that are not cached, since no plugin needs them, such as
              `pods=/spec/volumes,/status/conditions`. In a pointer, `*` means every element of a list.
              May be given several times
          --cache-keep <RESOURCE=POINTER,…>
              The only fields of a resource that are cached, such as
              `pods=/metadata/annotations,/status/phase`, besides the identity of objects, their labels,
              owners and deletionTimestamp. May be given several times
          --cache-managed-fields <RESOURCE>
              A resource whose metadata.managedFields and last applied configuration are cached as well.
              May be given several times

    Plugin objects:
          --component-dir <FOLDER>      The folder below which the sources of type `file` are. Without
                                        it, such sources are refused; `dev` uses the current folder
          --source-policy <FILE>        A YAML file that says which sources are allowed, and which must
                                        be signed. Without it, see docs/sources.md
          --max-component-bytes <SIZE>  The maximum size of the cache of fetched components [default:
                                        2Gi]
          --max-limits <FILE>           A YAML file with the highest `limits` that a Plugin object may
                                        set, in the form of the key `limits` of a plugin file. A limit
                                        that it does not name is not bounded further
          --max-concurrency <N>         The highest `concurrency` that a Plugin object may set [default:
                                        256]
          --max-weight <N>              The highest `weight` that a Plugin object may set [default:
                                        1000]

    Leader election:
          --leader-elect
              Calls plugins only while this process holds a Lease. Other processes are on standby: they
              have loaded the plugins and filled their caches, and take over when the Lease is free
          --leader-elect-lease-duration <DURATION>
              The time after the last renewal of the Lease at which another process may acquire it
              [default: 15s]
          --leader-elect-renew-deadline <DURATION>
              The time for which the leader tries to renew the Lease before it ends [default: 10s]
          --leader-elect-retry-period <DURATION>
              The interval between two tries [default: 2s]
          --leader-elect-resource-name <NAME>
              The name of the Lease [default: oarlock]
          --leader-elect-resource-namespace <NAMESPACE>
              The namespace of the Lease. Otherwise that of the Pod, or of the kubeconfig's context
    ");
    insta::assert_snapshot!(help(&["dev"]), @"
    Starts an API server on this machine and runs plugins against it

    Usage: oarlock dev [OPTIONS] [PLUGIN]...

    Arguments:
      [PLUGIN]...  Plugin files, folders of one plugin each, or folders of plugins [default: the plugin
                   in the current folder; if there is none, only the API server runs]

    Options:
          --log <FILTER>                 The host's own log on standard error: a level, or targets such
                                         as `oarlock=debug,kube=info` [env: OARLOCK_LOG] [default: warn]
          --port <PORT>                  The API server's port on 127.0.0.1. Otherwise a free one
          --cache-dir <FOLDER>           The folder for compiled plugins, which only this user can
                                         write. Otherwise `oarlock` in the user's cache folder, if it is
                                         writable [env: OARLOCK_CACHE_DIR]
          --kubeconfig <FILE>            The file for the kubeconfig [default: .oarlock/kubeconfig]
          --real                         Runs a real etcd and kube-apiserver instead of the embedded API
                                         server: those in the folder that KUBEBUILDER_ASSETS names, or
                                         those that `cargo xtask control-plane` has built
          --state-dir <FOLDER>           The folder for what a host keeps over a restart, which only
                                         this user can write: the last good version of each plugin, and
                                         the versions that are not tried again. Otherwise `oarlock` in
                                         the user's folder for state, if it is writable; `dev` uses a
                                         temporary one [env: OARLOCK_STATE_DIR]
          --fault <ACTION[,KEY=VALUE]…>  A fault that the embedded API server injects, such as
                                         `close-watch,resource=pods,after=10`. May be given several
                                         times
          --no-build                     Runs components as they are. Otherwise a plugin whose sources
                                         are beside its `plugin.yaml` is built first, and again whenever
                                         a source changes
          --admin-addr <ADDRESS>         The address that serves /livez, /readyz, /metrics and /plugins.
                                         On a loopback address without --admin-cert-file: plain HTTP,
                                         for every user of the machine. Otherwise HTTPS, and all but
                                         /livez and /readyz need a bearer token of a user whom
                                         Kubernetes allows `get` on the path
          --admin-cert-file <FILE>       The certificate for that address, in PEM, with those of its
                                         authorities; read again when it changes. Otherwise the host
                                         makes one, which clients cannot verify
          --admin-key-file <FILE>        The private key of that certificate, in PEM
          --output <OUTPUT>              The format of events on standard output, and of the host's own
                                         log on standard error [default: human] [possible values: human,
                                         json]
          --level <LEVEL>                The lowest level of printed events: trace, debug (every
                                         notification), info, warn or error [default: info]
      -h, --help                         Print help (see more with '--help')

    Record:
          --record <FILE>         Records all calls of the plugin, and everything that crosses its
                                  border, for `oarlock plugin replay`: a file for one plugin, or a
                                  folder (`records/`) or a pattern (`records/{plugin}.record`) for
                                  several. An existing file is not overwritten: `a.2.record` is next to
                                  `a.record`
          --record-plugin <NAME>  The only plugin to record
          --record-limit <SIZE>   The maximum size of all files of a plugin together. Its record ends
                                  there; the plugin continues [default: 256Mi]
          --record-secrets        Records values of Secrets as they are, and not pseudonyms of the same
                                  shape

    Traces:
          --otlp-endpoint <URL>
              Exports traces of sampled events to the OpenTelemetry collector at this URL, such as
              http://collector:4318, with OTLP over HTTP. Otherwise that of
              OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT. Without any of them
              there are no traces
          --trace-ratio <RATIO>
              The share of the watch events that are traced, from 0 to 1 [env: OTEL_TRACES_SAMPLER_ARG]
              [default: 0.01]
          --otlp-certificate-authority <FILE>
              A PEM file with certificate authorities that an https endpoint may have, beside those of
              the system [env: OTEL_EXPORTER_OTLP_CERTIFICATE]

    Caches:
          --max-informers <N>
              The maximum number of watched resources [default: 256]
          --max-objects <N>
              The maximum number of cached objects [default: 2000000]
          --max-cache-bytes <SIZE>
              The maximum memory of cached objects, such as 512Mi. The host itself and its plugins need
              more [default: 1Gi]
          --cache-drop <RESOURCE=POINTER,…>
              Fields that are not cached, since no plugin needs them, such as
              `pods=/spec/volumes,/status/conditions`. In a pointer, `*` means every element of a list.
              May be given several times
          --cache-keep <RESOURCE=POINTER,…>
              The only fields of a resource that are cached, such as
              `pods=/metadata/annotations,/status/phase`, besides the identity of objects, their labels,
              owners and deletionTimestamp. May be given several times
          --cache-managed-fields <RESOURCE>
              A resource whose metadata.managedFields and last applied configuration are cached as well.
              May be given several times

    Plugin objects:
          --component-dir <FOLDER>      The folder below which the sources of type `file` are. Without
                                        it, such sources are refused; `dev` uses the current folder
          --source-policy <FILE>        A YAML file that says which sources are allowed, and which must
                                        be signed. Without it, see docs/sources.md
          --max-component-bytes <SIZE>  The maximum size of the cache of fetched components [default:
                                        2Gi]
          --max-limits <FILE>           A YAML file with the highest `limits` that a Plugin object may
                                        set, in the form of the key `limits` of a plugin file. A limit
                                        that it does not name is not bounded further
          --max-concurrency <N>         The highest `concurrency` that a Plugin object may set [default:
                                        256]
          --max-weight <N>              The highest `weight` that a Plugin object may set [default:
                                        1000]
    ");
    insta::assert_snapshot!(help(&["rbac"]), @"
    Prints the rights that plugins and the host need, as YAML for `kubectl apply -f -`

    Usage: oarlock rbac [OPTIONS] [PLUGIN]...

    Arguments:
      [PLUGIN]...  Plugin files, folders of one plugin each, or folders of plugins. With
                   --service-account: components

    Options:
          --log <FILTER>
              The host's own log on standard error: a level, or targets such as
              `oarlock=debug,kube=info` [env: OARLOCK_LOG] [default: warn]
          --service-account <NAMESPACE/NAME>
              For a Plugin object: prints the rights that its component needs, for the account of the
              object. The rights of the host are those of its installation
          --cache-dir <FOLDER>
              The folder for compiled plugins, which only this user can write. Otherwise `oarlock` in
              the user's cache folder, if it is writable [env: OARLOCK_CACHE_DIR]
          --namespace <NAME>
              Prints the RoleBinding with which this namespace lets the host act as its ServiceAccounts,
              for Plugins in the namespace
          --constrained
              With --namespace: lets the host act as them on objects of the namespace only. Needs
              Kubernetes 1.36
          --state-dir <FOLDER>
              The folder for what a host keeps over a restart, which only this user can write: the last
              good version of each plugin, and the versions that are not tried again. Otherwise
              `oarlock` in the user's folder for state, if it is writable; `dev` uses a temporary one
              [env: OARLOCK_STATE_DIR]
          --host-account <NAMESPACE/NAME>
              The ServiceAccount that the host runs as [default: oarlock-system/oarlock]
          --leader-elect
              Also prints the rights that the host needs with --leader-elect
          --leader-elect-resource-name <NAME>
              The name of the Lease [default: oarlock]
          --leader-elect-resource-namespace <NAMESPACE>
              The namespace of the Lease. Otherwise that of the host's account
      -h, --help
              Print help
    ");
    insta::assert_snapshot!(help(&["plugin", "inspect"]), @"
    Prints the same as `check`, as JSON

    Usage: oarlock plugin inspect [OPTIONS] [FILE]

    Arguments:
      [FILE]  A component (.wasm), a plugin file, the folder of one plugin, or `oci://REFERENCE` for an
              artifact of a registry [default: .]

    Options:
          --docker-config <FOLDER>  The folder with the `config.json` of Docker, which has the
                                    credentials for registries. Otherwise `~/.docker` [env:
                                    DOCKER_CONFIG]
          --log <FILTER>            The host's own log on standard error: a level, or targets such as
                                    `oarlock=debug,kube=info` [env: OARLOCK_LOG] [default: warn]
          --cache-dir <FOLDER>      The folder for compiled plugins, which only this user can write.
                                    Otherwise `oarlock` in the user's cache folder, if it is writable
                                    [env: OARLOCK_CACHE_DIR]
          --plain-http <HOST,…>     Asks these registries over plain HTTP. Registries on `localhost` and
                                    `127.0.0.1` always are
          --state-dir <FOLDER>      The folder for what a host keeps over a restart, which only this
                                    user can write: the last good version of each plugin, and the
                                    versions that are not tried again. Otherwise `oarlock` in the user's
                                    folder for state, if it is writable; `dev` uses a temporary one
                                    [env: OARLOCK_STATE_DIR]
      -h, --help                    Print help
    ");
}

#[test]
fn commands_answer_in_the_formats_of_data_only() {
    let parse = |line: &str| Args::try_parse_from(line.split(' '));
    let commands = [
        "suspend a",
        "resume a",
        "rollback a",
        "rollback a --release",
        "redeliver a --all",
        "redeliver a --existing",
        "redeliver a pods --existing",
    ];
    for command in commands {
        for format in ["json", "yaml"] {
            assert!(parse(&format!("oarlock {command} -o {format}")).is_ok(), "{command}");
            let words = format!("kubectl-oarlock {command} -o {format}");
            assert!(KubectlArgs::try_parse_from(words.split(' ')).is_ok(), "{command}");
        }
        assert!(parse(&format!("oarlock {command} -o wide")).is_err(), "{command}");
    }
    for wrong in ["--existing --all", "--existing --key tick", "pods default/a --existing"] {
        assert!(parse(&format!("oarlock redeliver a {wrong}")).is_err(), "{wrong}");
    }
    assert!(parse("oarlock top -w -o json").is_ok());
    assert!(parse("oarlock top -w --once").is_err());
}

#[test]
fn a_new_plugin_is_a_handler_of_configmaps_by_default() {
    let parse = |line: &str| Args::try_parse_from(line.split(' '));
    let new = |line: &str| match parse(line).unwrap().command {
        Command::Plugin(PluginArgs { command: PluginCommand::New(args) }) => args,
        _ => unreachable!(),
    };
    let args = new("oarlock plugin new web --lang ts");
    assert_eq!((args.reconciler, args.watch.to_string().as_str()), (false, "v1/configmaps"));
    let args = new("oarlock plugin new web --lang c --reconciler --watch apps/v1/deployments");
    assert_eq!((args.reconciler, args.watch.to_string().as_str()), (true, "apps/v1/deployments"));
    for wrong in [
        "oarlock plugin new web",
        "oarlock plugin new web --lang c --handler --reconciler",
        "oarlock plugin new Web --lang c",
        "oarlock plugin new web --lang c --watch deployments",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
