//! `bench-statistics FILE [--check]`: makes the zstd statistics with which every dictionary of the informer
//! begins.
//!
//! It reads Pods as JSON lines from standard input, as `bench-peers corpus` writes them. zstd's trainer makes
//! a dictionary of some of them; the head of that dictionary has the tables for literals, lengths and
//! offsets, and nothing of the Pods. With `--check` it writes nothing, and fails if the file has other bytes.
//!
//! It also prints how small Pods become that are not among the samples, with the tables and without any
//! dictionary head.

use std::io::Read;
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// The number of Pods that the trainer gets, spread over the whole corpus.
const SAMPLES: usize = 400;

/// The size of the trained dictionary. Its content is dropped.
const DICTIONARY_BYTES: usize = 64 << 10;

/// The bytes that end the head of a dictionary: the first three offsets to try, 1, 4 and 8.
const END: [u8; 12] = [1, 0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (file, is_check) = match &arguments[..] {
        [file] => (file, false),
        [file, check] if check == "--check" => (file, true),
        _ => bail!("usage: bench-statistics FILE [--check] < PODS"),
    };
    let pods = read_pods().context("cannot read the Pods from standard input")?;
    ensure!(pods.len() >= 2 * SAMPLES, "{} Pods are too few", pods.len());
    let (samples, others) = split(&pods);
    let head = head_of(&samples)?;
    for (name, head) in [("with the tables", &head[..]), ("without", &[])] {
        println!("{name}: {} bytes a Pod", mean_size(head, &samples, &others)?);
    }
    if !is_check {
        return fs::write(file, head).with_context(|| format!("cannot write {file}"));
    }
    let current = fs::read(file).with_context(|| format!("cannot read {file}"))?;
    println!("with the tables of {file}: {} bytes a Pod", mean_size(&current, &samples, &others)?);
    ensure!(current == head, "{file} is out of date: run `cargo xtask statistics`");
    Ok(())
}

/// Reads the Pods without their managedFields, as the cache keeps them.
fn read_pods() -> Result<Vec<String>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let pod = |line: &str| -> Result<String> {
        let mut pod: Value = serde_json::from_str(line)?;
        if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
        Ok(pod.to_string())
    };
    text.lines().map(pod).collect()
}

/// Splits the Pods into the samples and a tenth of the others.
fn split(pods: &[String]) -> (Vec<&str>, Vec<&str>) {
    let step = pods.len() / SAMPLES;
    let samples = pods.iter().step_by(step).take(SAMPLES).map(String::as_str).collect();
    let others = pods.iter().enumerate().filter(|(idx, _)| idx % step != 0 && idx % 10 == 3);
    (samples, others.map(|(_, pod)| pod.as_str()).collect())
}

/// Trains a dictionary and returns its head.
fn head_of(samples: &[&str]) -> Result<Vec<u8>> {
    let mut dictionary = zstd::dict::from_samples(samples, DICTIONARY_BYTES)?;
    let end = dictionary.windows(END.len()).position(|window| window == END);
    dictionary.truncate(end.context("the dictionary has no head")? + END.len());
    Ok(dictionary)
}

/// Returns the mean size of compressed Pods; the dictionary is the head and some whole samples.
fn mean_size(head: &[u8], samples: &[&str], others: &[&str]) -> Result<usize> {
    let mut dictionary = head.to_vec();
    for sample in samples.iter().step_by(SAMPLES / 16) {
        dictionary.extend_from_slice(sample.as_bytes());
    }
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary)?;
    let mut bytes = 0;
    for pod in others {
        bytes += compressor.compress(pod.as_bytes())?.len();
    }
    Ok(bytes / others.len())
}
