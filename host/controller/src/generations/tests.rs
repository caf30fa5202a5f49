use super::*;
use crate::report::{self, Level};

fn generations() -> (Generations, report::Reports) {
    let (reporter, reports) = report::channel(report::Config { level: Level::Debug, ..Default::default() });
    (Generations::new("p".into(), reporter), reports)
}

fn states(generations: &Generations) -> Vec<(u64, GenerationState)> {
    generations.views().into_iter().map(|it| (it.number, it.state)).collect()
}

/// Makes a generation and switches to it.
fn serve(generations: &Generations, before: Option<&GenerationHandle>) -> GenerationHandle {
    let handle = generations.begin(Purpose::Newest);
    handle.compiled("d".to_owned());
    handle.checked("1".to_owned());
    handle.warming();
    if let Some(before) = before {
        before.draining(handle.number());
    }
    handle.serving();
    handle
}

#[test]
fn a_swap_passes_every_state_in_order() {
    let (generations, mut reports) = generations();
    let one = serve(&generations, None);
    let two = serve(&generations, Some(&one));
    assert_eq!(states(&generations), [(1, GenerationState::Draining), (2, GenerationState::Serving)]);
    drop(one);
    assert_eq!(states(&generations), [(1, GenerationState::Gone), (2, GenerationState::Serving)]);
    let mut reported = Vec::new();
    while let Some(line) = futures::FutureExt::now_or_never(reports.next()).flatten() {
        let HostEvent::GenerationState { state, .. } = line.event else { panic!("{line}") };
        reported.push(format!("{}#{} {state}", line.plugin.unwrap(), line.generation.unwrap()));
    }
    insta::assert_snapshot!(reported.join(", "), @"p#1 fetched, p#1 compiled, p#1 checked, p#1 warming, p#1 serving, p#2 fetched, p#2 compiled, p#2 checked, p#2 warming, p#1 draining, p#2 serving, p#1 gone");
    assert_eq!(generations.transitions(), [2, 2, 2, 2, 2, 1, 1, 0, 0, 0]);
    drop(two);
    let gone = generations.views().pop().unwrap();
    insta::assert_snapshot!(gone.reason, @"its plugin was unloaded, or the host stops");
}

#[test]
fn what_a_generation_has_done_at_the_switch_is_done_once_and_never_for_one_that_fails() {
    let (generations, _reports) = generations();
    let done = Arc::new(Mutex::new(Vec::new()));
    let prepared = || {
        let handle = generations.begin(Purpose::Newest);
        let (number, of) = (handle.number(), done.clone());
        handle.at_switch(move || of.lock().push(number));
        handle.compiled("d".to_owned());
        handle.checked("1".to_owned());
        handle.warming();
        handle
    };
    let one = prepared();
    assert!(done.lock().is_empty(), "it is only prepared");
    one.serving();
    assert_eq!(*done.lock(), [1]);
    let two = prepared();
    two.leave();
    drop(two);
    generations.fail(GenerationState::Failed, "its first instance cannot be made");
    assert_eq!(*done.lock(), [1], "it never serves");
    let three = prepared();
    one.draining(three.number());
    three.serving();
    assert_eq!(*done.lock(), [1, 3]);
}

#[test]
fn only_the_states_that_the_diagram_shows_follow_each_other() {
    let allowed = |has_served| {
        let next_of = |state: GenerationState| {
            let next = GenerationState::ALL.into_iter().filter(|next| state.may_become(*next, has_served));
            format!("{state}: {}", next.map(GenerationState::name).collect::<Vec<_>>().join(" "))
        };
        GenerationState::ALL.map(next_of).join("\n")
    };
    insta::assert_snapshot!(allowed(false), @r"
    fetched: compiled gone failed
    compiled: checked gone failed quarantined
    checked: warming gone failed forbidden
    warming: serving gone failed forbidden
    serving: draining gone quarantined forbidden
    draining: gone
    gone: 
    failed: 
    quarantined: 
    forbidden: warming gone failed
    ");
    assert!(GenerationState::Forbidden.may_become(GenerationState::Serving, true));
    assert!(!GenerationState::Forbidden.may_become(GenerationState::Warming, true));
}

#[test]
#[should_panic(expected = "generation 1 of p changes from fetched to serving")]
fn an_impossible_transition_is_a_bug() {
    let (generations, _reports) = generations();
    let handle = generations.begin(Purpose::Newest);
    // The panic must not meet another one in the drop.
    let handle = std::mem::ManuallyDrop::new(handle);
    handle.serving();
}

#[test]
fn a_version_that_failed_keeps_its_number_and_one_that_is_read_again_does_not_repeat() {
    let (generations, _reports) = generations();
    let one = serve(&generations, None);
    for _ in 0..3 {
        // Another process writes the component at this moment.
        drop(generations.begin(Purpose::Newest));
    }
    assert_eq!(generations.next_number(), 2);
    generations.fail(GenerationState::Failed, "it is no component");
    // Its file cannot be read at all.
    generations.fail(GenerationState::Failed, "it does not exist");
    let unchanged = generations.begin(Purpose::Newest);
    assert_eq!(unchanged.number(), 4);
    unchanged.withdraw();
    assert_eq!(generations.next_number(), 4);
    let four = serve(&generations, Some(&one));
    drop(one);
    let shown: Vec<_> =
        generations.views().iter().map(|it| format!("{} {}: {}", it.number, it.state, it.reason)).collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    1 gone: its last calls have ended
    2 failed: it is no component
    3 failed: it does not exist
    4 serving: the host switched to it
    ");
    drop(four);
}

#[test]
fn promise_4_versions_that_fail_do_not_fill_the_list_and_the_one_that_serves_stays() {
    let (generations, _reports) = generations();
    let one = serve(&generations, None);
    for _ in 0..1_000 {
        generations.fail(GenerationState::Failed, "broken");
    }
    let views = states(&generations);
    assert_eq!(views.len(), KEPT);
    assert_eq!(views[0], (1, GenerationState::Serving));
    assert_eq!(views[KEPT - 1], (1_001, GenerationState::Failed));
    drop(one);
}

#[test]
fn a_generation_whose_account_is_missing_is_forbidden_until_it_is_back() {
    let (generations, _reports) = generations();
    let one = serve(&generations, None);
    generations.account_changed(Some("no account"));
    assert_eq!(states(&generations), [(1, GenerationState::Forbidden)]);
    generations.account_changed(None);
    assert_eq!(states(&generations), [(1, GenerationState::Serving)]);
    generations.account_changed(None);
    // The next one waits for its rights.
    let two = generations.begin(Purpose::Newest);
    two.compiled("d".to_owned());
    two.checked("2".to_owned());
    two.forbidden("no right");
    generations.account_changed(None);
    assert_eq!(states(&generations)[1], (2, GenerationState::Forbidden));
    two.warming();
    drop(two);
    assert_eq!(states(&generations)[1], (2, GenerationState::Gone));
    drop(one);
}
