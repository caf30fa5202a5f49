//! Components, real ones, against everything that may go wrong with them.

#[cfg(test)]
mod it {
    mod endurance;
    mod fairness;
    mod fake;
    mod fixtures;
    mod refusals;
    mod support;
}
