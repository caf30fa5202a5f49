//! Runs the fuzz targets on their corpus and on mutations of it.

use std::path::Path;

use super::*;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz"))
}

#[test]
fn no_target_panics_on_the_corpus_and_mutations_of_it() {
    oarlock_fuzz_corpus::run(folder(), &TARGETS);
}

#[test]
fn every_target_has_a_fuzz_program() {
    oarlock_fuzz_corpus::check_programs(folder(), &TARGETS);
}
