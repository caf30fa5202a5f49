//! Tests with real components: compilation, calls, and every kind of failure.

#[cfg(test)]
mod it {
    mod compiling;
    mod crossing;
    mod endurance;
    mod exceptions;
    mod fairness;
    mod fake;
    mod fixtures;
    mod hostile;
    mod hostile_names;
    mod record;
    mod refusals;
    mod shares;
    mod support;
}
