//! The cases of apimachinery's own selector tests, by their meaning.

use std::collections::BTreeMap;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn selects(selector: &str, pairs: &[(&str, &str)]) -> bool {
    selector.parse::<LabelSelector>().unwrap().matches(&labels(pairs))
}

#[test]
fn valid_texts_parse_and_display_sorted() {
    let cases = [
        ("", ""),
        ("  ", ""),
        ("x=a,y=b,z=c", "x=a,y=b,z=c"),
        ("z=c,x=a", "x=a,z=c"),
        ("x==a", "x=a"),
        ("x!=a,y=b", "x!=a,y=b"),
        ("x=", "x="),
        ("x= ", "x="),
        ("x=,z= ", "x=,z="),
        ("x= ,z= ", "x=,z="),
        ("!x", "!x"),
        ("! x", "!x"),
        ("x>1", "x>1"),
        ("x>1,z<5", "x>1,z<5"),
        ("\rx", "x"),
        ("this-is-a-dns.domain.com/key-with-dash", "this-is-a-dns.domain.com/key-with-dash"),
        (
            "0.1.2.domain/99 notin (10.10.100.1, tick.tack.clock)",
            "0.1.2.domain/99 notin (10.10.100.1,tick.tack.clock)",
        ),
        ("foo  in\t (abc)", "foo in (abc)"),
        ("x notin\n (abc)", "x notin (abc)"),
        ("x in (abc,)", "x in (,abc)"),
        ("x in ()", "x in ()"),
        ("x notin (abc,,def),bar,z in (),w", "bar,w,x notin (,abc,def),z in ()"),
        ("x,y in (a)", "x,y in (a)"),
        ("x notin ( )", "x notin ()"),
        ("x notin (, a)", "x notin (,a)"),
        ("a ", "a"),
        ("a in (x,y,notin, z,in)", "a in (in,notin,x,y,z)"),
        ("in in (in)", "in in (in)"),
        ("notin", "notin"),
    ];
    for (text, canonical) in cases {
        let selector: LabelSelector = text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(selector.to_string(), canonical, "{text:?}");
        assert_eq!(canonical.parse::<LabelSelector>().unwrap(), selector, "{text:?}");
    }
}

#[test]
fn invalid_texts_do_not_parse() {
    let cases = [
        "x=a||y=b",
        "x==a==b",
        "!x=a",
        "x<a",
        "x>",
        "x,,y",
        ",x,y",
        "x,",
        "x nott in (y)",
        "a in (xyz),",
        "a in (xyz)b notin ()",
        "a in (xyz abc)",
        "a notin(",
        "a (",
        "(",
        "a in",
        "a in x",
        "=a",
        "a b",
        "!",
        "!!a",
        "/a=b",
        "A.B/c=d",
        "a/b/c",
        "-a",
        "a=-1",
        "x>-1",
        "x>1.5",
        "x>9223372036854775808",
        "é=1",
        "a=é",
        "a=b=c",
        "a\u{0}b",
    ];
    for text in cases {
        assert!(text.parse::<LabelSelector>().is_err(), "{text:?}");
    }
    assert!(format!("{}=b", "a".repeat(63)).parse::<LabelSelector>().is_ok());
    assert!(format!("{}=b", "a".repeat(64)).parse::<LabelSelector>().is_err());
    assert!(format!("b={}", "a".repeat(64)).parse::<LabelSelector>().is_err());
    assert!(format!("{}/b", "a".repeat(254)).parse::<LabelSelector>().is_err());
}

#[test]
fn errors_are_the_api_servers_messages() {
    let error = |text: &str| text.parse::<LabelSelector>().unwrap_err().to_string();
    insta::assert_snapshot!(error("app in web"), @"unable to parse requirement: found 'web' expected: '('");
    insta::assert_snapshot!(error("a,"), @"found '', expected: identifier after ','");
    insta::assert_snapshot!(error("a=b c"), @"found 'c', expected: ',' or 'end of string'");
    insta::assert_snapshot!(error("a=b/c"), @r#"unable to parse requirement: values[0][a]: Invalid value: "b/c": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#);
    insta::assert_snapshot!(error("=a"), @"found '=', expected: !, identifier, or 'end of string'");
    insta::assert_snapshot!(error("!=a"), @"found '!=', expected: !, identifier, or 'end of string'");
    insta::assert_snapshot!(error("! =a"), @"unable to parse requirement: found '=', expected: identifier");
    insta::assert_snapshot!(error("a b"), @"unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
    insta::assert_snapshot!(error("a=!"), @"unable to parse requirement: found '!', expected: identifier");
    insta::assert_snapshot!(error("a>b"), @r#"unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer"#);
    insta::assert_snapshot!(error("a in (b"), @"unable to parse requirement: found '', expected: ',' or ')'");
    insta::assert_snapshot!(error("a in (b,=)"), @"unable to parse requirement: found '=', expected: ',', ')' or identifier");
    insta::assert_snapshot!(error("/a"), @r#"unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty"#);
}

#[test]
fn a_selector_matches_as_in_the_api_server() {
    assert!(selects("", &[("x", "y")]));
    assert!(selects("x=y", &[("x", "y")]));
    assert!(selects("x=y,z=w", &[("x", "y"), ("z", "w")]));
    assert!(selects("x!=y,z!=w", &[("x", "z"), ("z", "a")]));
    assert!(selects("notin=in", &[("notin", "in")]));
    assert!(selects("x", &[("x", "z")]));
    assert!(selects("!x", &[("y", "z")]));
    assert!(selects("x>1", &[("x", "2")]));
    assert!(selects("x<1", &[("x", "0")]));
    assert!(selects("x<1", &[("x", "-2")]));
    assert!(!selects("x=z", &[]));
    assert!(!selects("x=y", &[("x", "z")]));
    assert!(!selects("x=y,z=w", &[("x", "w"), ("z", "w")]));
    assert!(!selects("x!=y,z!=w", &[("x", "z"), ("z", "w")]));
    assert!(!selects("!x", &[("x", "z")]));
    assert!(!selects("x>1", &[("x", "0")]));
    assert!(!selects("x<1", &[("x", "2")]));
    assert!(!selects("x>1", &[("x", "two")]));
    assert!(!selects("x>1", &[]));
}

#[test]
fn an_absent_label_meets_only_not_equal_and_notin() {
    assert!(selects("x!=y", &[]));
    assert!(selects("x notin (y)", &[]));
    assert!(!selects("x in (,y)", &[]));
    assert!(selects("x in (,y)", &[("x", "")]));
    assert!(selects("x=", &[("x", "")]));
    assert!(!selects("x=", &[]));
    assert!(!selects("x notin (,y)", &[("x", "")]));
}

proptest::proptest! {
    #[test]
    fn garbage_never_panics(text in "[a-c0-9 ,!=<>()./é-]{0,24}|(a|in|notin|,|\\(|\\)| |=|!){0,10}") {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            let canonical = selector.to_string();
            proptest::prop_assert_eq!(canonical.parse::<LabelSelector>().unwrap(), selector);
        }
    }
}
