//! The costs of reads from the cache.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use oarlock_informer::indexer::IndexFunction;
use oarlock_informer::{Object, SharedInformer, indexer::IndexSource, object::ObjectKey};
use oarlock_measure::Meter;

/// The number of objects per value of the index.
const PER_VALUE: usize = 50;

/// Short operations are repeated for at least this long.
const READINGS: usize = 10_000;

/// Reads by key and by index, without bodies and with.
pub(crate) fn measure(informer: &SharedInformer, meter: &mut Meter) -> Result<()> {
    let indexer = informer.indexer();
    let mut keys = indexer.keys();
    scatter(&mut keys);
    meter.note("get_by_key_ns", nanoseconds(&keys, |key| usize::from(indexer.get(key).is_some())));
    let with_body = |key: &ObjectKey| indexer.get(key).map_or(0, |object| object.json().len());
    meter.note("get_by_key_ns_per_body", nanoseconds(&keys, with_body));

    let n_values = keys.len() / PER_VALUE;
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let group = move |key: &ObjectKey| (hasher.hash_one(key) % n_values.max(1) as u64).to_string();
    let source = IndexFunction::new(move |object| Ok(vec![group(object.key())]));
    informer.add_index("group", IndexSource::Function(source))?;
    let values: Vec<String> = (0..n_values).map(|value| value.to_string()).collect();
    let walked = |value: &String| {
        indexer
            .view_by_index("group", value)
            .map_or(0, |objects| objects.iter().map(Object::json_length).sum())
    };
    meter.note("by_index_of_50_ns", nanoseconds(&values, walked));
    let collected = |value: &String| indexer.by_index("group", value).map_or(0, |objects| objects.len());
    meter.note("by_index_of_50_collected_ns", nanoseconds(&values, collected));
    let with_bodies = |value: &String| {
        let objects = indexer.by_index("group", value).unwrap_or_default();
        objects.iter().map(|object| object.json().len()).sum()
    };
    meter.note("by_index_of_50_ns_per_body", nanoseconds(&values, with_bodies) / PER_VALUE as f64);
    Ok(())
}

/// Returns the mean time of an operation, applied to all items in turn until enough time has passed.
fn nanoseconds<T>(items: &[T], mut read: impl FnMut(&T) -> usize) -> f64 {
    let n_rounds = READINGS.div_ceil(items.len().max(1));
    let begun = Instant::now();
    for item in std::iter::repeat_n(items, n_rounds).flatten() {
        black_box(read(item));
    }
    begun.elapsed().as_nanos() as f64 / (items.len() * n_rounds).max(1) as f64
}

/// Shuffles the keys.
fn scatter(keys: &mut [ObjectKey]) {
    let n = keys.len();
    for i in 0..n {
        keys.swap(i, (i.wrapping_mul(7919) + 13) % n);
    }
}
