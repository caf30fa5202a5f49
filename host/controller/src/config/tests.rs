use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;

const GOOD: &str = "\
name: hello
component: ../target/guests/hello.wasm
serviceAccount:
  namespace: oarlock-plugins
  name: hello
config:
  greeting: hi
  list: [1, 2.5, null]
suspend: true
";

fn error(text: &str) -> String {
    PluginFile::parse(Path::new("plugins/hello/plugin.yaml"), text).unwrap_err().to_string()
}

fn toml_error(text: &str) -> String {
    PluginFile::parse(Path::new("hello.toml"), text).unwrap_err().to_string()
}

#[test]
fn a_yaml_file_is_read_and_its_component_resolved_against_its_folder() {
    let file = PluginFile::parse(Path::new("plugins/hello/plugin.yaml"), GOOD).unwrap();
    assert_eq!(file.name, "hello");
    assert_eq!(file.component, Path::new("plugins/hello/../target/guests/hello.wasm"));
    assert_eq!(file.service_account.to_string(), "oarlock-plugins/hello");
    assert_eq!(file.config.text(), r#"{"greeting":"hi","list":[1,2.5,null]}"#);
    assert!(file.is_suspended && !file.suspend_writes);
}

#[test]
fn a_toml_file_is_read() {
    let text = "name = \"hello\"\ncomponent = \"/opt/hello.wasm\"\n\
                serviceAccount = { namespace = \"a\", name = \"b.c\" }\n[config]\nx = 1\n";
    let file = PluginFile::parse(Path::new("hello.toml"), text).unwrap();
    assert_eq!(file.component, Path::new("/opt/hello.wasm"));
    assert_eq!(file.service_account.name, "b.c");
    assert!(!file.suspend_writes);
}

#[test]
fn the_error_of_an_unknown_key_names_line_and_the_closest_known_key() {
    insta::assert_snapshot!(error(&GOOD.replace("serviceAccount", "serviceAcount")), @"plugins/hello/plugin.yaml:3:1: unknown key `serviceAcount`; did you mean `serviceAccount`? (known keys: name, component, serviceAccount, config, limits, suspend, suspendWrites, dryRun, concurrency, weight, instances, probation, retry, shadow)");
    insta::assert_snapshot!(error(&format!("{GOOD}colour: red\n")), @"plugins/hello/plugin.yaml:10:1: unknown key `colour` (known keys: name, component, serviceAccount, config, limits, suspend, suspendWrites, dryRun, concurrency, weight, instances, probation, retry, shadow)");
    insta::assert_snapshot!(error(&GOOD.replace("  name: hello", "  nam: hello")), @"plugins/hello/plugin.yaml:5:3: unknown key `nam` in `serviceAccount`; did you mean `name`? (known keys: namespace, name)");
    insta::assert_snapshot!(error(&format!("{GOOD}limits:\n  memry: 64Mi\n")), @"plugins/hello/plugin.yaml:11:3: unknown key `memry` in `limits`; did you mean `memory`? (known keys: memory, callDeadline, startDeadline, logLinesPerSecond, requestsPerSecond, hostcall, crossing, tableElements, coreInstances, tries, lossTries)");
    insta::assert_snapshot!(toml_error("name = \"a\"\ncomponnt = \"b\"\n"), @"hello.toml:2:1: unknown key `componnt`; did you mean `component`? (known keys: name, component, serviceAccount, config, limits, suspend, suspendWrites, dryRun, concurrency, weight, instances, probation, retry, shadow)");
}

#[test]
fn the_error_of_a_missing_key_or_wrong_type_names_the_key() {
    insta::assert_snapshot!(error("name: hello\ncomponent: a.wasm\n"), @"plugins/hello/plugin.yaml:1:1: the key `serviceAccount` is missing: every plugin acts as a ServiceAccount, such as `serviceAccount: {namespace: oarlock-plugins, name: my-plugin}`");
    insta::assert_snapshot!(error("component: a.wasm\nserviceAccount: {namespace: a, name: b}\n"), @"plugins/hello/plugin.yaml:1:1: the key `name` is missing");
    insta::assert_snapshot!(error("name: hello\ncomponent: a.wasm\nserviceAccount: {namespace: a}\n"), @"plugins/hello/plugin.yaml:3:17: the key `name` is missing in `serviceAccount`");
    insta::assert_snapshot!(error(&GOOD.replace("suspend: true", "suspend: maybe")), @r#"plugins/hello/plugin.yaml:9:10: suspend: invalid type: string "maybe", expected true or false"#);
    insta::assert_snapshot!(error(&format!("{GOOD}limits: {{memory: 64MB}}\n")), @r#"plugins/hello/plugin.yaml:10:18: limits.memory: invalid value: string "64MB", expected a size in bytes such as 64Mi (units: k, M, G, Ki, Mi, Gi)"#);
    insta::assert_snapshot!(error(&format!("{GOOD}limits: {{memory: 1Ki}}\n")), @"plugins/hello/plugin.yaml:10: limits.memory: 1Ki is not between 64Ki and 4Gi");
    insta::assert_snapshot!(error("name: [\n"), @"plugins/hello/plugin.yaml:1:7: name: invalid type: sequence, expected a text (a number needs quotes)");
    insta::assert_snapshot!(error(&GOOD.replace("name: hello\ncomp", "name: 5\ncomp")), @"plugins/hello/plugin.yaml:1:7: name: invalid type: integer `5`, expected a text (a number needs quotes)");
    insta::assert_snapshot!(error(&format!("{GOOD}name: b\n")), @"plugins/hello/plugin.yaml:10: the key `name` is there twice");
    insta::assert_snapshot!(error(&format!("{GOOD}limits:\n  tries: 2\n  # tries: 5\n  tries: 3\n")), @"plugins/hello/plugin.yaml:13: the key `tries` is there twice");
    insta::assert_snapshot!(error(""), @"plugins/hello/plugin.yaml:1:1: the key `name` is missing");
    insta::assert_snapshot!(toml_error("name = \n"), @"hello.toml:1:8: string values must be quoted, expected literal string");
}

#[test]
fn the_error_of_a_tab_in_the_indentation_says_that_yaml_allows_none() {
    for text in ["serviceAccount:\n\tnamespace: a\n", "name: hello\n\tcomponent: a.wasm\n"] {
        let error = error(text);
        let fix = ": YAML allows no tab in the indentation. Fix: indent with spaces";
        assert!(error.contains("plugin.yaml:2:1: found ") && error.ends_with(fix), "{error}");
    }
    let other = error("name: hello\ncomponent: @a\n");
    assert!(other.contains("cannot start any token") && !other.contains("tab"), "{other}");
}

#[test]
fn the_settings_of_a_plugin_have_defaults_and_ranges() {
    let file = PluginFile::parse(Path::new("plugins/hello/plugin.yaml"), GOOD).unwrap();
    assert_eq!((file.concurrency, file.weight, file.shadow), (1, 100, None));
    assert_eq!(file.instances, Instances::default());
    assert_eq!(file.probation, Probation::default());
    let text = format!(
        "{GOOD}concurrency: 16\nweight: 7\nshadow: next.wasm\nprobation: {{time: 0s, maxLosses: 0}}\n\
         instances: {{idleAfter: 5m, recycleAfterCalls: 1000, recycleAboveMemory: 32Mi}}\n"
    );
    let file = PluginFile::parse(Path::new("plugins/hello/plugin.yaml"), &text).unwrap();
    assert_eq!((file.concurrency, file.weight), (16, 7));
    assert_eq!(file.shadow.as_deref(), Some(Path::new("plugins/hello/next.wasm")));
    let Instances { idle_after, recycle_after_calls, recycle_above_memory } = file.instances;
    assert_eq!((idle_after.as_secs(), recycle_after_calls, recycle_above_memory), (300, 1000, 32 << 20));
    assert!(file.probation.time.is_zero() && file.probation.max_losses == 0);
    let with = |line: &str| error(&format!("{GOOD}{line}\n"));
    insta::assert_snapshot!(with("concurrency: 0"), @"plugins/hello/plugin.yaml:10: concurrency: 0 is not between 1 and 256");
    insta::assert_snapshot!(with("concurrency: 257"), @"plugins/hello/plugin.yaml:10: concurrency: 257 is not between 1 and 256");
    insta::assert_snapshot!(with("concurrency: many"), @r#"plugins/hello/plugin.yaml:10:14: concurrency: invalid type: string "many", expected a whole number"#);
    insta::assert_snapshot!(with("weight: 1001"), @"plugins/hello/plugin.yaml:10: weight: 1001 is not between 1 and 1000");
    insta::assert_snapshot!(with("instances: {idleAfter: 5ms}"), @"plugins/hello/plugin.yaml:10: instances.idleAfter: 5ms is not 0s (off) or between 100ms and 1440m");
    insta::assert_snapshot!(with("instances: {recycleAboveMemory: 1}"), @"plugins/hello/plugin.yaml:10: instances.recycleAboveMemory: 1 is not 0 (never) or between 64Ki and 4Gi");
    insta::assert_snapshot!(with("instances: {idle: 5s}"), @"plugins/hello/plugin.yaml:10:13: unknown key `idle` in `instances` (known keys: idleAfter, recycleAfterCalls, recycleAboveMemory)");
    insta::assert_snapshot!(with("instances: 5s"), @r#"plugins/hello/plugin.yaml:10:12: instances: invalid type: string "5s", expected a mapping such as {idleAfter: 60s}"#);
    insta::assert_snapshot!(with("probation: {time: 1441m}"), @"plugins/hello/plugin.yaml:10: probation.time: 1441m is not 0s (off) or between 100ms and 1440m");
    insta::assert_snapshot!(with("retry: {initialDelay: 0s}"), @"plugins/hello/plugin.yaml:10: retry.initialDelay: 0ms is not between 1ms and 10m");
    insta::assert_snapshot!(with("retry: {initialDelay: 2s, maxDelay: 1s}"), @"plugins/hello/plugin.yaml:10: retry.maxDelay: 1s is not at least `retry.initialDelay`, 2s");
    insta::assert_snapshot!(with("retry: {parkedDelay: 0ms}"), @"plugins/hello/plugin.yaml:10: retry.parkedDelay: 0ms is not between 1s and 1440m");
    insta::assert_snapshot!(with("retry:\n  initialDelay: 60m"), @"plugins/hello/plugin.yaml:11: retry.initialDelay: 60m is not between 1ms and 10m");
    // Keys of `config` have any name.
    let text = GOOD.replace("  greeting: hi", "  weight: 7\n  maxDelay: 1s");
    insta::assert_snapshot!(error(&format!("{text}weight: 0\n")), @"plugins/hello/plugin.yaml:11: weight: 0 is not between 1 and 1000");
    insta::assert_snapshot!(error(&format!("retry: {{initialDelay: 9m}}\n{text}")), @"plugins/hello/plugin.yaml: retry.maxDelay: 30s is not at least `retry.initialDelay`, 9m");
    insta::assert_snapshot!(toml_error("name = 'a'\ncomponent = 'a.wasm'\nconfig = { weight = 0 }\nserviceAccount = { namespace = 'a', name = 'b' }\n[limits]\ncallDeadline = '5s'\ntries = 0\n"), @"hello.toml:7: limits.tries: 0 is not between 1 and 1000");
    insta::assert_snapshot!(with("probation: {maxLosses: 1001}"), @"plugins/hello/plugin.yaml:10: probation.maxLosses: 1001 is not between 0 and 1000");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    let path = Path::new("plugins/hello/plugin.yaml");
    let marked = |text: &str| PluginFile::parse(path, &format!("\u{feff}{text}"));
    assert_eq!(marked(GOOD).unwrap(), PluginFile::parse(path, GOOD).unwrap());
    let unknown = format!("colour: red\n{GOOD}");
    assert_eq!(marked(&unknown).unwrap_err().to_string(), error(&unknown));
    let mapping = parse_mapping("\u{feff}a: 1\nb: 2\n".as_bytes()).unwrap();
    assert_eq!(serde_json::Value::from(mapping), serde_json::json!({"a": 1, "b": 2}));
}

#[test]
fn the_error_of_a_value_that_cannot_be_held_says_what_is_allowed() {
    let with = |line: &str| error(&format!("{GOOD}{line}\n"));
    insta::assert_snapshot!(with("concurrency: 99999999999999999999999"), @"plugins/hello/plugin.yaml:10:14: concurrency: 99999999999999999999999 is not between 1 and 256");
    insta::assert_snapshot!(with("concurrency: -1"), @"plugins/hello/plugin.yaml:10:14: concurrency: -1 is not between 1 and 256");
    insta::assert_snapshot!(with("weight: 5000000000"), @"plugins/hello/plugin.yaml:10:9: weight: 5000000000 is not between 1 and 1000");
    insta::assert_snapshot!(with("limits: {memory: 99999999999999999999Gi}"), @"plugins/hello/plugin.yaml:10:18: limits.memory: 99999999999999999999Gi is not between 64Ki and 4Gi");
    insta::assert_snapshot!(with("limits: {callDeadline: 99999999999999999m}"), @"plugins/hello/plugin.yaml:10:24: limits.callDeadline: 99999999999999999m is not between 1ms and 10m");
    insta::assert_snapshot!(error(&GOOD.replace("suspend: true", "suspend: yes")), @r#"plugins/hello/plugin.yaml:9:10: suspend: invalid type: string "yes", expected true or false"#);
    insta::assert_snapshot!(error(&GOOD.replace("../target/guests/hello.wasm", "")), @"plugins/hello/plugin.yaml:2: `component` is empty: give the path of a component");
    let config = |value: &str| error(&GOOD.replace("greeting: hi", &format!("greeting: {value}")));
    insta::assert_snapshot!(config("123456789012345678901234567890"), @"plugins/hello/plugin.yaml:7:13: config.greeting: an integer beyond 64 bits: write it in quotes");
    insta::assert_snapshot!(config("-123456789012345678901234567890"), @"plugins/hello/plugin.yaml:7:13: config.greeting: an integer beyond 64 bits: write it in quotes");
    for value in [".nan", ".inf", "-.inf"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(config(value), @"plugins/hello/plugin.yaml:7:13: config.greeting: JSON has no NaN and no infinity: leave it out, or write it in quotes");
        }
    }
    let account = "serviceAccount = { namespace = 'a', name = 'b' }";
    let toml = toml_error(&format!("name = 'a'\ncomponent = 'b'\n{account}\nconfig = {{ a = nan }}\n"));
    assert!(toml.ends_with("JSON has no NaN and no infinity: leave it out, or write it in quotes"), "{toml}");
}

#[test]
fn the_error_of_a_second_document_names_its_line() {
    let two = format!("# A comment.\n---\n{GOOD}---\n{GOOD}");
    insta::assert_snapshot!(error(&two), @"plugins/hello/plugin.yaml:12: one plugin for each file, but there is more than one document. Fix: move the second document to a file of its own");
    PluginFile::parse(Path::new("a.yaml"), &format!("---\n{GOOD}")).unwrap();
}

#[test]
fn names_must_be_valid_in_kubernetes() {
    insta::assert_snapshot!(error(&GOOD.replace("name: hello\ncomp", "name: Hello\ncomp")), @"plugins/hello/plugin.yaml:1: name `Hello` is not a valid name: 'H' is not allowed (lower-case letters, digits and '-' are)");
    insta::assert_snapshot!(error(&GOOD.replace("name: hello\ncomp", "name: hello-\ncomp")), @"plugins/hello/plugin.yaml:1: name `hello-` is not a valid name: it must begin and end with a letter or digit");
    insta::assert_snapshot!(error(&GOOD.replace("oarlock-plugins", "a.b")), @"plugins/hello/plugin.yaml:4: serviceAccount.namespace `a.b` is not a valid name: '.' is not allowed (lower-case letters, digits and '-' are)");
}

#[test]
fn a_folder_is_read_into_valid_files_and_errors() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("a.yaml", GOOD);
    write("b/plugin.yaml", &GOOD.replace("name: hello\ncomp", "name: other\ncomp"));
    write("c.yml", GOOD);
    write("d.toml", "nam = 1");
    write("Cargo.toml", "[workspace]");
    write("oarlock.toml", "world = \"plugin\"");
    write("README.md", "not a plugin");
    write("empty/notes.txt", "not a plugin either");

    let loaded = load_dir(dir.path()).unwrap();
    let names: Vec<_> = loaded.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["hello", "other"]);
    let root = format!("{}/", dir.path().display());
    let errors: Vec<_> = loaded.errors.iter().map(|error| error.to_string().replace(&root, "")).collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    c.yml: the plugin name `hello` is already used in a.yaml
    d.toml:1:1: unknown key `nam`; did you mean `name`? (known keys: name, component, serviceAccount, config, limits, suspend, suspendWrites, dryRun, concurrency, weight, instances, probation, retry, shadow)
    ");

    assert!(load_dir(&dir.path().join("absent")).is_err());
    let empty = PluginFile::read(&dir.path().join("empty")).unwrap_err();
    insta::assert_snapshot!(empty.to_string().replace(&root, ""), @"empty: contains no plugin.yaml, plugin.yml or plugin.toml. Fix: name a plugin file or the folder of one; `oarlock plugin new NAME` makes a plugin");
}

#[test]
fn a_plugin_file_of_another_name_in_a_subfolder_is_an_error() {
    let folder = Folder::new(&[]);
    for name in ["a", "b", "js/cases", "deploy", ".hidden"] {
        std::fs::create_dir_all(folder.at(name)).unwrap();
    }
    let other = GOOD.replace("name: hello\ncomp", "name: other\ncomp");
    let toml = "name = 'c'\ncomponent = 'c.wasm'\n[serviceAccount]\nnamespace = 'a'\nname = 'c'\n";
    let files = [
        ("a/w.yaml", GOOD),
        ("a/c.toml", toml),
        // The file of the folder's plugin is there: the others are not the host's.
        ("js/plugin.yaml", other.as_str()),
        ("js/second.yaml", GOOD),
        // Files of other tools, and malformed ones.
        ("js/cases/one.yaml", "description: a\nconfig: {}\n"),
        ("b/oarlock.toml", toml),
        ("b/docker-compose.yml", "services: {}\n"),
        ("b/bad.yaml", "component: [\nserviceAccount: a\n"),
        ("deploy/values.yaml", "component: web\nserviceAccount: {create: true, name: web}\n"),
        ("deploy/objects.yaml", "kind: Plugin\n---\nkind: ServiceAccount\n"),
        (".hidden/w.yaml", GOOD),
    ];
    files.iter().for_each(|(name, text)| folder.write(name, text));
    let root = folder.0.path().to_owned();
    let load = |paths: &[PathBuf]| {
        folder.load(paths, Circumstances::default()).replace(&root.display().to_string(), "PLUGINS")
    };
    insta::assert_snapshot!(load(std::slice::from_ref(&root)), @"
    other of js/plugin.yaml
    a/c.toml: is not read: in a subfolder of PLUGINS only plugin.yaml, plugin.yml and plugin.toml are. Fix: rename it, or move it to PLUGINS; names that begin with a dot are left alone
    a/w.yaml: is not read: in a subfolder of PLUGINS only plugin.yaml, plugin.yml and plugin.toml are. Fix: rename it, or move it to PLUGINS; names that begin with a dot are left alone
    ");
    assert_eq!(load_dir(&root).unwrap().errors.len(), 2);
    // The folder of the files, or a file, is named too.
    insta::assert_snapshot!(load(&[root.clone(), folder.at("a")]), @"
    other of js/plugin.yaml
    c of a/c.toml
    hello of a/w.yaml
    ");
    std::fs::remove_file(folder.at("js/plugin.yaml")).unwrap();
    std::fs::remove_file(folder.at("a/c.toml")).unwrap();
    std::fs::rename(folder.at("a/w.yaml"), folder.at("a/plugin.yaml")).unwrap();
    insta::assert_snapshot!(load(std::slice::from_ref(&root)), @"
    hello of a/plugin.yaml
    js/second.yaml: is not read: in a subfolder of PLUGINS only plugin.yaml, plugin.yml and plugin.toml are. Fix: rename it, or move it to PLUGINS; names that begin with a dot are left alone
    ");
}

#[test]
fn the_detail_of_an_error_leaves_the_path_out() {
    let detail = |text: &str| PluginFile::parse(Path::new("a: b/plugin.yaml"), text).unwrap_err().detail();
    insta::assert_snapshot!(detail(&format!("{GOOD}colour: red\n")), @"line 10, column 1: unknown key `colour` (known keys: name, component, serviceAccount, config, limits, suspend, suspendWrites, dryRun, concurrency, weight, instances, probation, retry, shadow)");
    insta::assert_snapshot!(detail(&GOOD.replace("oarlock-plugins", "a.b")), @"line 4: serviceAccount.namespace `a.b` is not a valid name: '.' is not allowed (lower-case letters, digits and '-' are)");
    insta::assert_snapshot!(detail(&format!("{GOOD}limits: {{memory: 1Ki}}\n")), @"line 10: limits.memory: 1Ki is not between 64Ki and 4Gi");
}

#[test]
fn the_manifest_of_a_plugin_object_is_no_plugin_file() {
    let plugin = "apiVersion: oarlock.dev/v1alpha1\nkind: Plugin\nmetadata: {name: a}\nspec: {}\n";
    insta::assert_snapshot!(error(plugin), @"plugins/hello/plugin.yaml: this is a Plugin object, not a plugin file. Fix: check the object with `kubectl apply --dry-run=server --filename FILE` (docs/plugin-objects.md), and its component with `oarlock plugin check COMPONENT`");
    let cluster_plugin = plugin.replace("kind: Plugin", "kind: ClusterPlugin");
    let account = "# The account.\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n";
    let several = error(&format!("---\n{account}---\n{cluster_plugin}"));
    assert!(several.contains("this is a ClusterPlugin object, not a plugin file"), "{several}");
    for other in
        [account.to_owned(), plugin.replace("oarlock.dev", "example.com"), format!("{plugin}---\n- [")]
    {
        let error = error(&other);
        assert_eq!(error.contains("not a plugin file"), other.contains("oarlock.dev"), "{error}");
    }
}

#[test]
fn the_error_of_a_wrong_type_names_the_expected_type() {
    insta::assert_snapshot!(error("name: a\ncomponent: a.wasm\nserviceAccount: hello\n"), @r#"plugins/hello/plugin.yaml:3:17: serviceAccount: invalid type: string "hello", expected a mapping such as {namespace: oarlock-plugins, name: my-plugin}"#);
    insta::assert_snapshot!(error("name:\ncomponent: a.wasm\nserviceAccount: {namespace: a, name: b}\n"), @"plugins/hello/plugin.yaml:1:6: name: no value, expected a text (a number needs quotes)");
    insta::assert_snapshot!(error("name: a\ncomponent: [a]\nserviceAccount: {namespace: a, name: b}\n"), @"plugins/hello/plugin.yaml:2:12: component: invalid type: sequence, expected a path");
    insta::assert_snapshot!(error("just text\n"), @r#"plugins/hello/plugin.yaml:1:1: invalid type: string "just text", expected a mapping with the keys `name`, `component` and `serviceAccount`"#);
    insta::assert_snapshot!(error("- a\n"), @"plugins/hello/plugin.yaml:1:1: invalid type: sequence, expected a mapping with the keys `name`, `component` and `serviceAccount`");
    insta::assert_snapshot!(error(&format!("{GOOD}limits: 64Mi\n")), @r#"plugins/hello/plugin.yaml:10:9: limits: invalid type: string "64Mi", expected a mapping such as {memory: 64Mi}"#);
    insta::assert_snapshot!(error(&format!("{GOOD}limits: {{logLinesPerSecond: -1}}\n")), @"plugins/hello/plugin.yaml:10:29: limits.logLinesPerSecond: -1 is not between 0 and 100000");
    insta::assert_snapshot!(error(&GOOD.replace("config:\n  greeting: hi\n  list: [1, 2.5, null]", "config: [1]")), @"plugins/hello/plugin.yaml:6:9: config: invalid type: sequence, expected a mapping");
    insta::assert_snapshot!(error(&GOOD.replace("greeting: hi", "1: hi\n  ? [a]\n  : b")), @"plugins/hello/plugin.yaml:8:5: config: invalid type: sequence, expected a string");
    insta::assert_snapshot!(toml_error("name = \"a\"\ncomponent = \"b\"\nserviceAccount = \"c\"\n"), @r#"hello.toml:3:18: invalid type: string "c", expected a mapping such as {namespace: oarlock-plugins, name: my-plugin}"#);
}

#[test]
fn nesting_and_expanded_aliases_are_bounded() {
    let with = |config: &str| format!("{}config: {config}\n", GOOD.split("config:").next().unwrap());
    let refused = |text: &str| {
        let error = PluginFile::parse(Path::new("p.yaml"), text).unwrap_err().to_string();
        assert!(error.len() < 300, "{} bytes", error.len());
        error
    };
    let many = 200_000;
    insta::assert_snapshot!(refused(&"[".repeat(many)), @"p.yaml:1: more than 64 brackets are open at once");
    insta::assert_snapshot!(refused(&with(&"{a: ".repeat(many))), @"p.yaml:6: more than 64 brackets are open at once");
    insta::assert_snapshot!(refused(&with(&format!("\n  a: {}", "- ".repeat(many)))), @"p.yaml:7:6: block sequence entries are not allowed in this context");
    insta::assert_snapshot!(refused(&with(&format!("\n  a: {}1", "? ".repeat(many)))), @"p.yaml:7:6: mapping keys are not allowed in this context");
    insta::assert_snapshot!(refused(&with(&format!("{{a: &a {:?}, b: [{}]}}", "x".repeat(1 << 19), "*a,".repeat(900)))), @"p.yaml:6:13: config.b[0]: larger than 1024 KiB after its aliases are expanded");
    insta::assert_snapshot!(refused(&"- ".repeat(many)), @"p.yaml:1:1: invalid type: sequence, expected a mapping with the keys `name`, `component` and `serviceAccount`");
    let nested = refused(&with(&format!("\n  a:\n    {}1", "- ".repeat(many))));
    assert!(nested.ends_with("nested more than 64 levels deep"), "{nested}");
    let mut laughs = "\n  a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for n in 1..30 {
        let before = format!("*a{},", n - 1).repeat(10);
        laughs.push_str(&format!("  a{n}: &a{n} [{before}]\n"));
    }
    insta::assert_snapshot!(refused(&with(&laughs)), @"p.yaml: its aliases expand to too much");
    let keys = format!("\n  a: &a {}\n", "k".repeat(1000)) + &"  b: {? *a : 1}\n".replace('b', "c");
    PluginFile::parse(Path::new("p.yaml"), &with(&keys)).unwrap();
    let toml = |rest: &str| {
        let text = format!(
            "name = \"a\"\ncomponent = \"b\"\n{rest}\n[serviceAccount]\nnamespace = \"a\"\nname = \"b\"\n"
        );
        PluginFile::parse(Path::new("p.toml"), &text).map_err(|error| error.to_string())
    };
    insta::assert_snapshot!(toml(&format!("config = {}", "[".repeat(many))).unwrap_err(), @"p.toml:3: more than 64 brackets are open at once");
    insta::assert_snapshot!(toml(&format!("config.{} = 1", vec!["a"; many].join("."))).unwrap_err(), @"p.toml: it is nested too deeply");
    insta::assert_snapshot!(toml(&format!("[config.{}]", vec!["a"; many].join("."))).unwrap_err(), @"p.toml: it is nested too deeply");
    toml("config.a.b.c = [[[1]]]").unwrap();

    // A large file within the limits is accepted.
    let large = PluginFile::parse(Path::new("p.yaml"), &with(&format!("{{a: {:?}}}", "x".repeat(1_000_000))))
        .unwrap();
    assert_eq!(large.config.value()["a"].as_str().unwrap().len(), 1_000_000);
    let expanded = PluginFile::parse(Path::new("p.yaml"), &with("\n  a: &a [1, {b: c}]\n  d: *a")).unwrap();
    assert_eq!(expanded.config.value()["d"], serde_json::json!([1, {"b": "c"}]));
    let ones = vec!["1"; 500_000].join(",");
    PluginFile::parse(Path::new("p.yaml"), &with(&format!("{{a: [{ones}]}}"))).unwrap();
    assert!(
        PluginFile::parse(Path::new("p.yaml"), &with(""))
            .unwrap()
            .config
            .value()
            .as_object()
            .unwrap()
            .is_empty()
    );
}

/// A folder of plugin files.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.at(name), text).unwrap();
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Loads the paths; returns the plugins by name and file, then the errors.
    fn load(&self, paths: &[PathBuf], circumstances: Circumstances<'_>) -> String {
        let Loaded { files, errors } = load_paths_under(paths, circumstances);
        let files = files.iter().map(|file| format!("{} of {}", file.name, file.path.display()));
        let lines: Vec<_> = files.chain(errors.iter().map(ToString::to_string)).collect();
        lines.join("\n").replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[test]
fn a_loaded_plugin_keeps_its_name_against_a_file_that_sorts_first() {
    let folder = Folder::new(&[("a.yaml", GOOD), ("b.yaml", GOOD)]);
    let all = [folder.0.path().to_owned()];
    let owners = BTreeMap::from([("hello".to_owned(), folder.at("b.yaml"))]);
    let running = Circumstances { owners: Some(&owners), ..Circumstances::default() };
    insta::assert_snapshot!(folder.load(&all, running), @"
    hello of b.yaml
    a.yaml: the plugin name `hello` is already used in b.yaml
    ");
    // It also keeps its name while its file is malformed or empty.
    folder.write("b.yaml", "name: [");
    insta::assert_snapshot!(folder.load(&all, running), @"
    a.yaml: the plugin name `hello` is already used in b.yaml
    b.yaml:1:7: name: invalid type: sequence, expected a text (a number needs quotes)
    ");
    folder.write("b.yaml", "");
    insta::assert_snapshot!(folder.load(&all, running), @"
    a.yaml: the plugin name `hello` is already used in b.yaml
    b.yaml:1:1: the key `name` is missing
    ");
    // It loses its name when its file names another plugin, or is removed.
    folder.write("b.yaml", &GOOD.replace("name: hello\ncomp", "name: other\ncomp"));
    insta::assert_snapshot!(folder.load(&all, running), @"
    hello of a.yaml
    other of b.yaml
    ");
    std::fs::remove_file(folder.at("b.yaml")).unwrap();
    insta::assert_snapshot!(folder.load(&all, running), @"hello of a.yaml");
    // A path that is named twice does not conflict with itself.
    let twice = [folder.0.path().to_owned(), folder.at("a.yaml")];
    insta::assert_snapshot!(folder.load(&twice, Circumstances::default()), @"hello of a.yaml");
}

#[test]
fn paths_that_are_not_regular_files_are_errors_and_block_nothing() {
    use std::os::unix::{ffi::OsStrExt, fs::symlink};

    let folder = Folder::new(&[("good.yaml", GOOD)]);
    let all = [folder.0.path().to_owned()];
    assert!(std::process::Command::new("mkfifo").arg(folder.at("fifo.yaml")).status().unwrap().success());
    symlink("/dev/zero", folder.at("zero.yaml")).unwrap();
    symlink("nowhere", folder.at("dangling.yaml")).unwrap();
    std::fs::create_dir(folder.at("folder.yaml")).unwrap();
    std::fs::create_dir(folder.at("plugin")).unwrap();
    symlink("/dev/zero", folder.at("plugin/plugin.yaml")).unwrap();
    std::fs::File::create(folder.at("huge.yaml")).unwrap().set_len(1 << 40).unwrap();
    std::fs::write(folder.at("bytes.yaml"), b"name: \xff").unwrap();
    let not_utf8 = folder.0.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.yaml"));
    std::fs::write(not_utf8, GOOD.replace("name: hello\ncomp", "name: coffee\ncomp")).unwrap();
    std::fs::create_dir(folder.at(".hidden")).unwrap();
    folder.write(".hidden/plugin.yaml", GOOD);
    insta::assert_snapshot!(folder.load(&all, Circumstances::default()), @"
    coffee of caf�.yaml
    hello of good.yaml
    bytes.yaml: is not UTF-8 text
    dangling.yaml: cannot be read: No such file or directory (os error 2)
    fifo.yaml: cannot be read: it is a FIFO, and only regular files are read
    folder.yaml: cannot be read: it is a folder, and only regular files are read
    huge.yaml: cannot be read: it has 1099511627776 bytes, more than the 1048576 allowed
    plugin/plugin.yaml: cannot be read: it is a device, and only regular files are read
    ");
}

#[test]
fn a_component_without_a_plugin_file_is_a_plugin_if_it_gets_an_account() {
    let folder = Folder::new(&[("My_Plugin.v2.wasm", ""), ("---.wasm", "")]);
    let paths = [folder.at("My_Plugin.v2.wasm"), folder.at("---.wasm")];
    insta::assert_snapshot!(folder.load(&paths, Circumstances::default()), @"
    My_Plugin.v2.wasm: a component needs a plugin file that names its ServiceAccount. Fix: write one with the keys `name`, `component` and `serviceAccount`; `oarlock dev`, and `oarlock rbac` with --service-account, need none
    ---.wasm: a component needs a plugin file that names its ServiceAccount. Fix: write one with the keys `name`, `component` and `serviceAccount`; `oarlock dev`, and `oarlock rbac` with --service-account, need none
    ");
    let account_of = |name: &str| format!("default/{name}").parse().ok();
    let dev = Circumstances { account_of: Some(&account_of), ..Circumstances::default() };
    insta::assert_snapshot!(folder.load(&paths, dev), @"
    my-plugin-v2 of My_Plugin.v2.wasm
    ---.wasm: a component needs a plugin file that names its ServiceAccount. Fix: write one with the keys `name`, `component` and `serviceAccount`; `oarlock dev`, and `oarlock rbac` with --service-account, need none
    ");
    let file = &load_paths_under(&paths, dev).files[0];
    assert_eq!(file.service_account.to_string(), "default/my-plugin-v2");
    assert_eq!(file.component, paths[0]);
}

#[test]
fn a_malformed_plugin_file_keeps_its_name_from_an_object() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.yaml");
    let text = "name: a\ncomponent: a.wasm\nserviceAccount: {namespace: a, name: a}\n";
    let object = PluginFile::parse(Path::new("/clusterplugins.oarlock.dev/a/uid/a.yaml"), text).unwrap();
    let definitions = BTreeMap::from([(Arc::from("a"), Arc::new(object))]);
    let owners = BTreeMap::from([("a".to_owned(), path.clone())]);
    let load = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let mut loaded = load_dir(dir.path()).unwrap();
        loaded.add(&definitions, &owners);
        let files: Vec<_> = loaded.files.into_iter().map(|it| it.path).collect();
        (files, loaded.errors.len())
    };
    assert_eq!(load(text), (vec![path.clone()], 1), "the file has the name");
    assert_eq!(load("name: ["), (vec![], 2), "it has the name still");
    let other = text.replace("name: a\n", "name: b\n");
    assert_eq!(load(&other), (vec![path.clone(), definitions["a"].path.clone()], 0));
}
