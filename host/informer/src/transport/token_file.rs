//! The token file of a configuration: its text, without white space at both ends, is the bearer token.
//!
//! kube's own layer sends the text as it is, so that a file that ends in a newline makes a header that no
//! request can have. kubectl and client-go trim the text. Like client-go, this layer reads the file again
//! every [`READ_AGAIN`], and keeps the last token while the file has none: some programs remove it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use kube::client::Body;
use kube::config::AuthInfo;
use tokio::time::Instant;
use tower::util::MapRequestLayer;

/// How long a token is used before the file is read again: client-go's minute, less its leeway of 10 s.
const READ_AGAIN: Duration = Duration::from_secs(50);

/// Why a token file provides no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file cannot be read, or is no text.
    #[error("the token file {} cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file has nothing but white space.
    #[error("the token file {} is empty", .0.display())]
    Empty(PathBuf),
    /// The text cannot be the value of a header.
    #[error("the token file {} has several lines or control characters, which no token has", .0.display())]
    NotAToken(PathBuf),
}

/// The token in a file, which is read again from time to time.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
    header: HeaderValue,
    read_again: Instant,
    /// The file had no token when it was read last.
    has_failed: bool,
}

// === impl TokenFile ===

impl TokenFile {
    /// Reads the token file of a user. Returns `None` if requests of the user have other credentials: a token
    /// or a password in the configuration itself precedes the file, as it does for kube.
    ///
    /// # Errors
    ///
    /// If the file has no token.
    pub fn of(user: &AuthInfo) -> Result<Option<Self>, TokenFileError> {
        let AuthInfo { username, password, token, token_file, auth_provider, .. } = user;
        let has_password = username.is_some() && password.is_some();
        let precedes = has_password || token.is_some() || auth_provider.is_some();
        match token_file {
            Some(path) if !precedes => Self::read(path.into()).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    fn read(path: PathBuf) -> Result<Self, TokenFileError> {
        let header = read_header(&path)?;
        Ok(Self { path, header, read_again: Instant::now() + READ_AGAIN, has_failed: false })
    }

    /// Returns the value of the header `authorization`, which is marked as sensitive. Reads the file if that
    /// is due.
    pub fn header(&mut self) -> HeaderValue {
        if Instant::now() >= self.read_again {
            self.read_again = Instant::now() + READ_AGAIN;
            match read_header(&self.path) {
                Ok(header) => {
                    self.header = header;
                    self.has_failed = false;
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.has_failed, true) {
                        let cause = std::error::Error::source(&error).map(ToString::to_string);
                        tracing::warn!(%error, cause, "the last token stays in use");
                    }
                }
            }
        }
        self.header.clone()
    }

    /// Returns the layer that sets the header of each request.
    pub fn layer(mut self) -> MapRequestLayer<impl FnMut(Request<Body>) -> Request<Body> + Clone + Send> {
        MapRequestLayer::new(move |mut request: Request<Body>| {
            request.headers_mut().insert(AUTHORIZATION, self.header());
            request
        })
    }
}

fn read_header(path: &Path) -> Result<HeaderValue, TokenFileError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| TokenFileError::Unreadable(path.to_owned(), error))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(TokenFileError::Empty(path.to_owned()));
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| TokenFileError::NotAToken(path.to_owned()))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use kube::config::{AuthProviderConfig, ExecConfig};

    use super::*;

    fn user(path: &Path) -> AuthInfo {
        AuthInfo { token_file: Some(path.display().to_string()), ..AuthInfo::default() }
    }

    /// A file of its own for each test, which is removed at the end.
    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> Self {
            let name = format!("oarlock-token-file-{}-{name}", std::process::id());
            let file = Self(std::env::temp_dir().join(name));
            file.write(text);
            file
        }

        fn write(&self, text: &str) {
            std::fs::write(&self.0, text).unwrap();
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn white_space_around_the_token_is_not_part_of_it() {
        let file = File::new("trimmed", "");
        for text in ["the-token", "the-token\n", " the-token\r\n\n"] {
            file.write(text);
            let mut token = TokenFile::of(&user(&file.0)).unwrap().unwrap();
            let header = token.header();
            assert_eq!(
                (header.to_str().unwrap(), header.is_sensitive()),
                ("Bearer the-token", true),
                "{text:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_is_read_again_and_the_last_token_stays_while_it_has_none() {
        let file = File::new("rotated", "first\n");
        let mut token = TokenFile::of(&user(&file.0)).unwrap().unwrap();
        file.write("second\n");
        tokio::time::advance(READ_AGAIN - Duration::from_millis(1)).await;
        assert_eq!(token.header(), "Bearer first");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(token.header(), "Bearer second");
        for without in ["", "two\nlines"] {
            file.write(without);
            tokio::time::advance(READ_AGAIN).await;
            assert_eq!(token.header(), "Bearer second");
        }
        file.write("third");
        tokio::time::advance(READ_AGAIN).await;
        assert_eq!(token.header(), "Bearer third");
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_without_a_token_is_named() {
        let file = File::new("refused", "");
        let refused = || {
            let error = TokenFile::of(&user(&file.0)).unwrap_err();
            error.to_string().replace(&file.0.display().to_string(), "FILE")
        };
        assert_eq!(refused(), "the token file FILE is empty");
        file.write("a\nb");
        let several = "the token file FILE has several lines or control characters, which no token has";
        assert_eq!(refused(), several);
        std::fs::remove_file(&file.0).unwrap();
        assert_eq!(refused(), "the token file FILE cannot be read");
    }

    #[tokio::test(start_paused = true)]
    async fn other_credentials_precede_the_file() {
        let absent_file = || user(Path::new("/nonexistent/token"));
        let with_token = AuthInfo { token: Some("t".to_owned().into()), ..absent_file() };
        assert!(TokenFile::of(&with_token).unwrap().is_none());
        assert!(TokenFile::of(&AuthInfo::default()).unwrap().is_none());
        let password = Some("p".to_owned().into());
        let with_password = AuthInfo { username: Some("u".into()), password, ..absent_file() };
        assert!(TokenFile::of(&with_password).unwrap().is_none());
        let with_provider = AuthInfo { auth_provider: Some(AuthProviderConfig::default()), ..absent_file() };
        assert!(TokenFile::of(&with_provider).unwrap().is_none());
        // A name alone is no credential, and the file precedes a program.
        let with_name = AuthInfo { username: Some("u".into()), ..absent_file() };
        assert!(TokenFile::of(&with_name).is_err());
        let with_program = AuthInfo { exec: Some(ExecConfig::default()), ..absent_file() };
        assert!(TokenFile::of(&with_program).is_err());
    }
}
