//! Fetching over the network, on loopback, from servers that misbehave.

#[cfg(test)]
mod it {
    mod artifact;
    mod fetching;
    mod https;
    mod keyless;
    mod misbehaving;
    mod objects;
    mod private_sigstore;
    mod server;
    mod signatures;
}
