use std::fs;
use std::path::Path;

use super::*;

/// Writes a fresh certificate and key, and returns the certificate.
fn write(folder: &Path) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(folder.join("tls.crt"), made.pem()).unwrap();
    fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    made.der().clone()
}

fn files(folder: &Path) -> CertificateFiles {
    CertificateFiles { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_read_again_when_its_files_change_and_kept_while_they_are_broken() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    let certificate = Certificate::read(files(folder.path())).await.unwrap();
    let first = certificate.config();
    let read = certificate.files.as_ref().unwrap();
    certificate.read_again(read).await.unwrap();
    assert!(Arc::ptr_eq(&first, &certificate.config()), "nothing has changed");
    // The new certificate is there before its key.
    let old_key = fs::read(folder.path().join("tls.key")).unwrap();
    write(folder.path());
    let new_key = fs::read(folder.path().join("tls.key")).unwrap();
    fs::write(folder.path().join("tls.key"), old_key).unwrap();
    let error = certificate.read_again(read).await.unwrap_err();
    assert!(matches!(error, Error::Unusable(_)), "{error}");
    assert!(Arc::ptr_eq(&first, &certificate.config()));
    fs::write(folder.path().join("tls.key"), new_key).unwrap();
    certificate.read_again(read).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &certificate.config()));
}

#[tokio::test]
async fn files_that_are_wrong_are_named_with_their_flag() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let error = async || {
        let error = Certificate::read(files(folder.path())).await.unwrap_err();
        crate::chain::text(&error).replace(&folder.path().display().to_string(), "DIR")
    };
    insta::assert_snapshot!(error().await, @"cannot read DIR/tls.crt: name a readable file with --admin-cert-file: No such file or directory (os error 2)");
    write(folder.path());
    let good_key = fs::read(path("tls.key")).unwrap();
    fs::write(path("tls.key"), "no key").unwrap();
    insta::assert_snapshot!(error().await, @"DIR/tls.key has no private key in PEM: name one that begins with BEGIN PRIVATE KEY with --admin-key-file");
    fs::write(path("tls.key"), vec![b'x'; 2 << 20]).unwrap();
    insta::assert_snapshot!(error().await, @"cannot read DIR/tls.key: name a readable file with --admin-key-file: it has 2097152 bytes, more than the 1048576 allowed");
    fs::write(path("tls.key"), good_key).unwrap();
    fs::write(path("tls.crt"), "").unwrap();
    insta::assert_snapshot!(error().await, @"DIR/tls.crt has no certificate in PEM: name one that begins with BEGIN CERTIFICATE with --admin-cert-file");
}
