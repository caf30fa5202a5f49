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
    insta::assert_snapshot!(error(&GOOD.replace("serviceAccount", "serviceAcount")), @"");
    insta::assert_snapshot!(error(&format!("{GOOD}colour: red\n")), @"");
    insta::assert_snapshot!(error(&GOOD.replace("  name: hello", "  nam: hello")), @"");
    insta::assert_snapshot!(error(&format!("{GOOD}limits:\n  memry: 64Mi\n")), @"");
    insta::assert_snapshot!(toml_error("name = \"a\"\ncomponnt = \"b\"\n"), @"");
}

#[test]
fn a_missing_or_mistyped_key_is_named() {
    insta::assert_snapshot!(error("name: hello\ncomponent: a.wasm\n"), @"");
    insta::assert_snapshot!(error("component: a.wasm\nserviceAccount: {namespace: a, name: b}\n"), @"");
    insta::assert_snapshot!(error("name: hello\ncomponent: a.wasm\nserviceAccount: {namespace: a}\n"), @"");
    insta::assert_snapshot!(error(&GOOD.replace("suspend: true", "suspend: maybe")), @"");
    insta::assert_snapshot!(error(&format!("{GOOD}limits: {{memory: 64MB}}\n")), @"");
    insta::assert_snapshot!(error(&format!("{GOOD}limits: {{memory: 1Ki}}\n")), @"");
    insta::assert_snapshot!(error("name: [\n"), @"");
    insta::assert_snapshot!(error(""), @"");
    insta::assert_snapshot!(toml_error("name = \n"), @"");
}

#[test]
fn names_are_what_kubernetes_takes() {
    insta::assert_snapshot!(error(&GOOD.replace("name: hello\ncomp", "name: Hello\ncomp")), @"");
    insta::assert_snapshot!(error(&GOOD.replace("name: hello\ncomp", "name: hello-\ncomp")), @"");
    insta::assert_snapshot!(error(&GOOD.replace("oarlock-plugins", "a.b")), @"");
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
    insta::assert_snapshot!(errors.join("\n"), @"");

    assert!(load_dir(&dir.path().join("absent")).is_err());
    let empty = PluginFile::read(&dir.path().join("empty")).unwrap_err();
    insta::assert_snapshot!(empty.to_string().replace(&root, ""), @"");
}
