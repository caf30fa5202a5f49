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
fn reads_yaml_and_resolves_the_component_against_the_file() {
    let file = PluginFile::parse(Path::new("plugins/hello/plugin.yaml"), GOOD).unwrap();
    assert_eq!(file.name, "hello");
    assert_eq!(file.component, Path::new("plugins/hello/../target/guests/hello.wasm"));
    assert_eq!(file.service_account.to_string(), "oarlock-plugins/hello");
    assert_eq!(serde_json::to_string(&file.config).unwrap(), r#"{"greeting":"hi","list":[1,2.5,null]}"#);
    assert!(file.suspend);
}

#[test]
fn reads_toml() {
    let text = "name = \"hello\"\ncomponent = \"/opt/hello.wasm\"\n\
                serviceAccount = { namespace = \"a\", name = \"b.c\" }\n[config]\nx = 1\n";
    let file = PluginFile::parse(Path::new("hello.toml"), text).unwrap();
    assert_eq!(file.component, Path::new("/opt/hello.wasm"));
    assert_eq!(file.service_account.name, "b.c");
    assert!(!file.suspend);
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_what_was_meant() {
    insta::assert_snapshot!(error(&GOOD.replace("serviceAccount", "serviceAcount")), @"plugins/hello/plugin.yaml:3:1: unknown key `serviceAcount`; did you mean `serviceAccount`? (known keys: name, component, serviceAccount, config, limits, suspend)");
    insta::assert_snapshot!(error(&format!("{GOOD}colour: red\n")), @"plugins/hello/plugin.yaml:10:1: unknown key `colour` (known keys: name, component, serviceAccount, config, limits, suspend)");
    insta::assert_snapshot!(error(&GOOD.replace("  name: hello", "  nam: hello")), @"plugins/hello/plugin.yaml:5:3: unknown key `nam` in `serviceAccount`; did you mean `name`? (known keys: namespace, name)");
    insta::assert_snapshot!(error(&format!("{GOOD}limits:\n  memry: 64Mi\n")), @"plugins/hello/plugin.yaml:11:3: unknown key `memry` in `limits`; did you mean `memory`? (known keys: memory, callDeadline, startDeadline, logLinesPerSecond, hostcall, tableElements, coreInstances, tries, lossTries)");
    insta::assert_snapshot!(toml_error("name = \"a\"\ncomponnt = \"b\"\n"), @"hello.toml:2:1: unknown key `componnt`; did you mean `component`? (known keys: name, component, serviceAccount, config, limits, suspend)");
}

#[test]
fn a_missing_or_mistyped_key_is_named() {
    insta::assert_snapshot!(error("name: hello\ncomponent: a.wasm\n"), @"plugins/hello/plugin.yaml:1:1: the key `serviceAccount` is missing: every plugin acts as a ServiceAccount of its own, such as `serviceAccount: {namespace: oarlock-plugins, name: my-plugin}`");
    insta::assert_snapshot!(error("component: a.wasm\nserviceAccount: {namespace: a, name: b}\n"), @"plugins/hello/plugin.yaml:1:1: the key `name` is missing");
    insta::assert_snapshot!(error("name: hello\ncomponent: a.wasm\nserviceAccount: {namespace: a}\n"), @"plugins/hello/plugin.yaml:3:17: the key `name` is missing in `serviceAccount`");
    insta::assert_snapshot!(error(&GOOD.replace("suspend: true", "suspend: maybe")), @r#"plugins/hello/plugin.yaml:9:10: suspend: invalid type: string "maybe", expected a boolean"#);
    insta::assert_snapshot!(error(&format!("{GOOD}limits: {{memory: 64MB}}\n")), @r#"plugins/hello/plugin.yaml:10:18: limits.memory: invalid value: string "64MB", expected a size in bytes such as 64Mi (units: k, M, G, Ki, Mi, Gi)"#);
    insta::assert_snapshot!(error(&format!("{GOOD}limits: {{memory: 1Ki}}\n")), @"plugins/hello/plugin.yaml: limits.memory: 1Ki is not between 64Ki and 4Gi");
    insta::assert_snapshot!(error("name: [\n"), @"plugins/hello/plugin.yaml:1:7: name: invalid type: sequence, expected a string");
    insta::assert_snapshot!(error(""), @"plugins/hello/plugin.yaml:1:1: the key `name` is missing");
    insta::assert_snapshot!(toml_error("name = \n"), @"hello.toml:1:8: string values must be quoted, expected literal string");
}

#[test]
fn names_are_what_kubernetes_takes() {
    insta::assert_snapshot!(error(&GOOD.replace("name: hello\ncomp", "name: Hello\ncomp")), @"plugins/hello/plugin.yaml:1: name `Hello` is no valid name: 'H' is not allowed (lower-case letters, digits and '-' are)");
    insta::assert_snapshot!(error(&GOOD.replace("name: hello\ncomp", "name: hello-\ncomp")), @"plugins/hello/plugin.yaml:1: name `hello-` is no valid name: it must begin and end with a letter or digit");
    insta::assert_snapshot!(error(&GOOD.replace("oarlock-plugins", "a.b")), @"plugins/hello/plugin.yaml:4: serviceAccount.namespace `a.b` is no valid name: '.' is not allowed (lower-case letters, digits and '-' are)");
}

#[test]
fn a_folder_gives_its_good_files_and_tells_of_the_bad_ones() {
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
    write("README.md", "not a plugin");
    write("empty/notes.txt", "not a plugin either");

    let loaded = load_dir(dir.path()).unwrap();
    let names: Vec<_> = loaded.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["hello", "other"]);
    let root = format!("{}/", dir.path().display());
    let errors: Vec<_> = loaded.errors.iter().map(|error| error.to_string().replace(&root, "")).collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    c.yml: a plugin named `hello` stands in a.yaml already
    d.toml:1:1: unknown key `nam`; did you mean `name`? (known keys: name, component, serviceAccount, config, limits, suspend)
    ");

    assert!(load_dir(&dir.path().join("absent")).is_err());
    let empty = PluginFile::read(&dir.path().join("empty")).unwrap_err();
    insta::assert_snapshot!(empty.to_string().replace(&root, ""), @"empty: holds no plugin.yaml or plugin.toml");
}

#[test]
fn the_detail_leaves_the_file_out() {
    let detail = |text: &str| PluginFile::parse(Path::new("a: b/plugin.yaml"), text).unwrap_err().detail();
    insta::assert_snapshot!(detail(&format!("{GOOD}colour: red\n")), @"line 10, column 1: unknown key `colour` (known keys: name, component, serviceAccount, config, limits, suspend)");
    insta::assert_snapshot!(detail(&GOOD.replace("oarlock-plugins", "a.b")), @"line 4: serviceAccount.namespace `a.b` is no valid name: '.' is not allowed (lower-case letters, digits and '-' are)");
    insta::assert_snapshot!(detail(&format!("{GOOD}limits: {{memory: 1Ki}}\n")), @"limits.memory: 1Ki is not between 64Ki and 4Gi");
}
