use super::*;
use crate::entry::{Call, Ended, Gone};

fn entries() -> Vec<Entry> {
    let call = |number: u64| Call {
        number,
        instance: 1,
        time_ms: 5,
        function: "reconcile".to_owned(),
        argument: serde_json::json!({"kind": "a", "object": {"name": "ä\n\"b"}}),
        imports: vec![],
        ended: Ended::Answer(serde_json::Value::Null),
        lost_before: 0,
        cut: false,
    };
    vec![Entry::Call(call(1)), Entry::Gone(Gone { instance: 1, lost_before: 3 }), Entry::Call(call(2))]
}

/// Returns a file with one entry in each block.
fn file() -> Vec<u8> {
    let (mut encoder, mut file) = Encoder::new();
    for entry in entries() {
        assert!(encoder.add(&entry).unwrap());
        file.extend(encoder.block().unwrap());
    }
    file
}

fn read(file: &[u8]) -> (Vec<Entry>, Result<bool, Error>) {
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (vec![], Err(error)),
    };
    let mut entries = vec![];
    loop {
        match reader.next_entry() {
            Ok(Some(entry)) => entries.push(entry),
            Ok(None) => return (entries, Ok(reader.is_truncated())),
            Err(error) => return (entries, Err(error)),
        }
    }
}

#[test]
fn written_entries_can_be_read() {
    let (read, truncated) = read(&file());
    assert_eq!(read, entries());
    assert!(!truncated.unwrap());
}

#[test]
fn a_file_can_be_read_up_to_where_it_was_truncated() {
    let (file, all) = (file(), entries());
    let mut whole = 0;
    for length in 0..file.len() {
        let (read, ended) = read(&file[..length]);
        assert_eq!(read, all[..read.len()], "{length}");
        assert!(read.len() >= whole, "a longer file has fewer entries");
        match ended {
            Err(Error::NotARecord) => assert!(length < 12),
            // A file that ends between two blocks looks complete.
            Ok(truncated) => assert!(truncated || read.len() > whole || length == 12, "{length}"),
            Err(error) => panic!("{length}: {error}"),
        }
        whole = read.len();
    }
    assert_eq!(whole, all.len() - 1);
}

#[test]
fn damage_is_an_error_or_ends_the_record_and_is_never_another_entry() {
    let (file, all) = (file(), entries());
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            let (read, ended) = read(&damaged);
            assert_eq!(read, all[..read.len()], "byte {at}");
            // Some bits have no meaning.
            assert!(read == all || ended.is_err() || ended.unwrap(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn other_files_and_hostile_lengths_are_refused() {
    let refused = |bytes: &[u8]| read(bytes).1.unwrap_err().to_string();
    insta::assert_snapshot!(refused(b"\x7fELF and so on"), @"is not a record: it does not begin with OARLKREC");
    insta::assert_snapshot!(refused(b"OARLKREC\x09\x00\x00\x00"), @"is a record in version 9 of the format; this oarlock reads version 1");
    let with = |rest: &[u8]| [b"OARLKREC\x01\x00\x00\x00", rest].concat();
    insta::assert_snapshot!(refused(&with(&[0xff; 8])), @"is damaged at byte 12: a block of 4294967295 bytes, unpacked 4294967295");
    // A frame that unpacks to more than the block says.
    let bomb = zstd::bulk::compress(&vec![b'x'; 1 << 20], 19).unwrap();
    let lengths = [u32::try_from(bomb.len()).unwrap().to_le_bytes(), 100_u32.to_le_bytes()].concat();
    assert!(refused(&with(&[lengths, bomb].concat())).contains("cannot be unpacked"));
    // A block that is no list of entries.
    assert!(refused(&in_one_block(br#"{"entry":"other"}"#)).contains("unknown variant `other`"));
}

/// Returns a record with a call of this argument.
fn with_argument(argument: &str) -> Vec<u8> {
    let call = format!(
        r#"{{"entry":"call","number":1,"instance":1,"time-ms":0,"function":"reconcile","argument":{argument},"imports":[],"ended":"cancelled"}}"#
    );
    in_one_block(call.as_bytes())
}

#[test]
fn an_entry_that_would_take_more_memory_than_those_of_a_host_is_refused_before_it_is_decoded() {
    let ended = |argument: &str| read(&with_argument(argument)).1;
    for (value, n) in [("0,", 8 << 20), (r#"{"":0},"#, 2 << 20), ("[],", 4 << 20), (r#""",[[0]],"#, 1 << 20)]
    {
        let error = ended(&format!("[{}0]", value.repeat(n))).unwrap_err().to_string();
        assert!(error.contains("takes more than 384 MiB"), "{value}: {error}");
    }
    let error = ended(&format!("\"{}\"", "x".repeat(33 << 20))).unwrap_err().to_string();
    assert!(error.contains("larger than hosts write"), "{error}");
    // The same characters within a text are no values.
    for text in [r#"{\"\":[0,0]},"#, r"\\"] {
        assert!(ended(&format!("\"{}\"", text.repeat(2 << 20))).is_ok(), "{text}");
    }
    // Deeper than the parser goes.
    let error = ended(&"[".repeat(1 << 18)).unwrap_err().to_string();
    assert!(error.contains("recursion limit"), "{error}");
}

/// The writer cuts a call at half of the maximum.
#[test]
fn what_a_host_writes_is_never_refused() {
    for value in ["null", r#""""#, r#"{"":0}"#, "[]", "{}", r#"{"a":{"b":["c",1.5]}}"#, "[[[[]]]]", r#""\"""#]
    {
        let value: serde_json::Value = serde_json::from_str(value).unwrap();
        let n = MAX_ENTRY / 2 / json_size(&value);
        let entry = with_argument(&serde_json::Value::Array(vec![value.clone(); n]).to_string());
        let (entries, ended) = read(&entry);
        assert_eq!(entries.len(), 1, "{value}: {ended:?}");
    }
}

#[test]
fn garbage_after_a_whole_block_is_named_by_its_place() {
    let whole = file();
    let mut damaged = whole.clone();
    damaged.extend(b"this is no block, but text");
    let (entries, ended) = read(&damaged);
    assert_eq!(entries.len(), 3, "what comes before it is read");
    let error = ended.unwrap_err().to_string();
    assert!(error.starts_with(&format!("is damaged at byte {}", whole.len())), "{error}");
}
