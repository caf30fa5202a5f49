use oarlock_plugin::contract::{
    Content, Enqueue, FieldCondition as Condition, GroupVersionResource, Schedule, Test, Trigger,
};

use super::*;

fn subscription(group: &str, plural: &str) -> Subscription {
    Subscription {
        name: "it".to_owned(),
        target: GroupVersionResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
        },
        namespaces: Namespaces::All,
        label_selector: String::new(),
        conditions: Vec::new(),
        fields: Vec::new(),
        content: Content::Full,
        resync_seconds: 0,
        enqueue: Enqueue::Nothing,
        ignore_own_writes: false,
    }
}

fn condition(pointer: &str, test: Test) -> Condition {
    Condition { pointer: pointer.to_owned(), test }
}

fn description(subscriptions: Vec<Subscription>) -> Description {
    Description {
        name: "p".to_owned(),
        version: "1".to_owned(),
        subscriptions,
        reads: Vec::new(),
        indices: Vec::new(),
        requests: Vec::new(),
        schedules: Vec::new(),
        stateless: true,
    }
}

fn example(subscriptions: Vec<Subscription>) -> String {
    let Example { text, command } = of("p", &description(subscriptions), "kubectl");
    command.unwrap_or(text)
}

#[test]
fn the_command_creates_an_object_that_the_plugin_watches() {
    let hello = Subscription { label_selector: "app=hello".to_owned(), ..subscription("", "configmaps") };
    insta::assert_snapshot!(example(vec![hello]), @r#"echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"try-p","namespace":"default","labels":{"app":"hello"}},"data":{"greeting":"hi"}}' | kubectl apply -f -"#);
    let mirror = Subscription {
        conditions: vec![condition("/metadata/annotations/oarlock.dev~1mirror-to", Test::Exists)],
        ..subscription("", "configmaps")
    };
    insta::assert_snapshot!(example(vec![mirror]), @r#"echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"try-p","namespace":"default","annotations":{"oarlock.dev/mirror-to":"*"}},"data":{"greeting":"hi"}}' | kubectl apply -f -"#);
    let running = Subscription {
        namespaces: Namespaces::One("team-a".to_owned()),
        conditions: vec![
            condition("/status/phase", Test::Equals(r#""Running""#.to_owned())),
            condition("/spec/nodeName", Test::Absent),
            condition("/spec/restartPolicy", Test::Differs(r#""Always""#.to_owned())),
        ],
        ..subscription("", "pods")
    };
    insta::assert_snapshot!(example(vec![running]), @r#"
    echo '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"try-p","namespace":"team-a"},"spec":{"containers":[{"name":"main","image":"registry.k8s.io/pause:3.10"}]}}' | kubectl apply -f -
    kubectl patch pods try-p --namespace team-a --subresource=status --type=merge --patch '{"status":{"phase":"Running"}}'
    "#);
}

#[test]
fn a_subscription_without_a_command_is_skipped() {
    let boats =
        Subscription { label_selector: "it=floats".to_owned(), ..subscription("example.com", "boats") };
    insta::assert_snapshot!(example(vec![boats.clone()]), @"it acts on boats.example.com with labels it=floats");
    insta::assert_snapshot!(example(vec![boats, subscription("", "namespaces")]), @r#"echo '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"try-p"}}' | kubectl apply -f -"#);
    let never = Subscription { label_selector: "a,!a".to_owned(), ..subscription("", "pods") };
    insta::assert_snapshot!(example(vec![never]), @"it acts on pods with labels a,!a");
}

#[test]
fn a_value_with_quotes_is_quoted_for_the_shell() {
    let test = Test::Equals(r#""it's""#.to_owned());
    let quoting =
        Subscription { conditions: vec![condition("/data/x", test)], ..subscription("", "configmaps") };
    assert!(example(vec![quoting]).contains(r#""x":"it'\''s""#));
    let test = Test::Equals(r#""a\nb""#.to_owned());
    let lines =
        Subscription { conditions: vec![condition("/data/x", test)], ..subscription("", "configmaps") };
    assert!(example(vec![lines]).starts_with("printf %s '"));
    assert_eq!(quoted("/tmp/a b"), "'/tmp/a b'");
    assert_eq!(quoted("/tmp/a"), "/tmp/a");
}

#[test]
fn the_text_names_schedules_too() {
    let schedule = |name: &str| Schedule {
        name: name.to_owned(),
        trigger: Trigger::EverySeconds(60),
        at_start: false,
        key: None,
    };
    let with_schedules = |subscriptions, schedules: &[&str]| {
        let schedules = schedules.iter().map(|name| schedule(name)).collect();
        of("p", &Description { schedules, ..description(subscriptions) }, "kubectl").text
    };
    insta::assert_snapshot!(
        with_schedules(Vec::new(), &["tick", "report"]),
        @"it acts at the times of its schedule tick, or at the times of its schedule report"
    );
    insta::assert_snapshot!(
        with_schedules(vec![subscription("example.com", "boats")], &["tick"]),
        @"it acts on boats.example.com, or at the times of its schedule tick"
    );
}
