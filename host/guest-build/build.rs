//! Has the crate compiled again when a file is added to what it embeds. Changes of a file are seen without
//! this.

fn main() {
    for folder in ["../../wit", "../../guest-sdk/rust", "../../templates", "go-runtime"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
