//! Runs the fuzz targets on their corpus and on mutations of it.

use std::fs;
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

/// The number of mutations per file.
const N_MUTATIONS: u64 = 200;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Applies up to three mutations: sets, removes or inserts a byte, copies a range, or truncates.
fn mutate(data: &mut Vec<u8>, random: &mut SmallRng) {
    const SPECIAL: &[u8] = b"{}[]\",:\\/\n\0*~0u\xff";
    for _ in 0..random.random_range(1..4) {
        if data.is_empty() {
            return;
        }
        let at = random.random_range(0..data.len());
        match random.random_range(0..5) {
            0 => data[at] = SPECIAL[random.random_range(0..SPECIAL.len())],
            1 => drop(data.remove(at)),
            2 => data.insert(at, SPECIAL[random.random_range(0..SPECIAL.len())]),
            3 => {
                let end = (at + random.random_range(1..20)).min(data.len());
                let piece = data[at..end].to_vec();
                let to = random.random_range(0..data.len());
                data.splice(to..to, piece);
            }
            _ => data.truncate(at),
        }
    }
}

#[test]
fn no_target_panics_on_the_corpus_and_mutations_of_it() {
    for (name, target) in TARGETS {
        let corpus = corpus(name);
        assert!(corpus.len() >= 3, "{name}");
        for (number, file) in (0..).zip(corpus) {
            target(&file);
            let mut random = SmallRng::seed_from_u64(number);
            for _ in 0..N_MUTATIONS {
                let mut changed = file.clone();
                mutate(&mut changed, &mut random);
                target(&changed);
            }
        }
    }
}

#[test]
fn every_target_has_a_fuzz_program() {
    let manifest = include_str!("../../../fuzz/Cargo.toml");
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}
