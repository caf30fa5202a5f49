//! Components, real ones, against everything that may go wrong with them.

#[cfg(test)]
mod it {
    mod compiling;
    mod endurance;
    mod exceptions;
    mod fairness;
    mod fake;
    mod fixtures;
    mod hostile;
    mod hostile_names;
    mod refusals;
    mod support;
}
