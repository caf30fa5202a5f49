//! Runs fuzz targets on their corpus and on mutations of it, so that `cargo test` finds what libFuzzer once
//! found.

#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A fuzz target: takes any bytes, and panics if a property does not hold.
pub type Target = fn(&[u8]);

/// The number of mutations per file.
const N_MUTATIONS: u64 = 200;

/// Runs targets on their corpus and on mutations of it. `fuzz` is the folder in the layout of cargo-fuzz.
///
/// # Panics
///
/// If a target panics, or has less than three files of corpus.
pub fn run(fuzz: &Path, targets: &[(&str, Target)]) {
    for (name, target) in targets {
        let corpus = corpus(&fuzz.join("corpus").join(name));
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

/// Checks that each target has a fuzz program.
///
/// # Panics
///
/// If one has none.
pub fn check_programs(fuzz: &Path, targets: &[(&str, Target)]) {
    let manifest = read(&fuzz.join("Cargo.toml"));
    let manifest = String::from_utf8_lossy(&manifest);
    for (name, _) in targets {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}

fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
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
