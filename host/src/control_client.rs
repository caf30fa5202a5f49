//! Asks a running host, over its control socket or its admin address; or the host of a cluster, over HTTPS.

mod find;
mod names;
mod remote;

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use oarlock_controller::tasks::{Criticality, Tasks};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub(crate) use self::find::{Finding, connect};
pub(crate) use self::names::{Names, SHADOW};
pub(crate) use self::remote::{Address, Credentials, Leader, Remote, Tunnel, trust};
use crate::failure::{Ended, Failure};

/// How long a host may take to answer. It answers a command when the plugin's call in progress ends.
const ANSWER_LIMIT: Duration = Duration::from_secs(75);

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// How long the next host of a cluster is waited for, after one has ended.
pub(crate) const TAKEOVER_LIMIT: Duration = Duration::from_secs(90);

/// The pause between two tries.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What to do when a connection ends before the answer.
pub(crate) const AGAIN_HINT: &str = "the host has stopped or was restarted: run the command again";

/// What to do about an answer that this version cannot read.
const VERSION_HINT: &str = "use an oarlock of the host's version: compare `oarlock --version` with the first \
                            line of the host's output";

/// A connection to a host.
pub(crate) struct ControlClient {
    place: Place,
    names: Names,
    sender: SendRequest<Full<Bytes>>,
    tasks: Tasks,
    /// Ends with the connection.
    _tunnel: Option<Tunnel>,
    /// The status of the last answer, if it was a refusal.
    refused: Option<StatusCode>,
}

/// Where a host is.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Socket(PathBuf, Chosen),
    /// An address of the admin pages.
    Admin(String),
    /// The host of a cluster.
    Remote(Box<Remote>),
}

/// How the user has chosen a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// With `--socket`.
    ByFlag,
    /// With `OARLOCK_SOCKET`.
    ByVariable,
}

/// What a host answers when it does not carry out an operation.
#[derive(Deserialize)]
struct Refusal {
    error: String,
    hint: Option<String>,
}

// === impl ControlClient ===

impl ControlClient {
    pub(crate) async fn open(place: Place) -> Result<Self, Failure> {
        // The connection's task ends with the process.
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let mut tunnel = None;
        let connected = match &place {
            Place::Remote(remote) => {
                let (stream, opened) = remote.connect().await?;
                tunnel = opened;
                start(stream, &tasks).await
            }
            Place::Socket(path, chosen) => {
                match tokio::time::timeout(CONNECT_LIMIT, UnixStream::connect(path)).await {
                    Ok(Ok(stream)) => start(stream, &tasks).await,
                    Ok(Err(error)) => return Err(socket_failure(path, *chosen, error)),
                    Err(_) => return Err(no_answer(&place, CONNECT_LIMIT)),
                }
            }
            Place::Admin(address) => {
                match tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
                    Ok(Ok(stream)) => start(stream, &tasks).await,
                    Ok(Err(error)) => {
                        let failure =
                            anyhow::Error::new(error).context(format!("no host answers at {address}"));
                        return Err(Failure::caller(failure).hint(
                            "--admin takes HOST:PORT, the address that the host was given with --admin-addr",
                        ));
                    }
                    Err(_) => return Err(no_answer(&place, CONNECT_LIMIT)),
                }
            }
        };
        let names = match &place {
            Place::Remote(remote) => remote.names.clone(),
            Place::Socket(..) | Place::Admin(_) => Names::OfHost,
        };
        let sender = connected.map_err(Failure::running)?;
        Ok(Self { sender, place, names, tasks, _tunnel: tunnel, refused: None })
    }

    /// Returns how plugins are named.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Returns whether the last answer was a refusal that another try or another host would repeat.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some_and(|it| matches!(it.as_u16(), 400..=404))
    }

    /// Connects again, perhaps to another host.
    pub(crate) async fn reconnect(&mut self) -> Ended {
        *self = Self::open(self.place.clone()).await?;
        Ok(())
    }

    /// Reads a page.
    pub(crate) async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Failure> {
        let answer = self.bytes(Method::GET, path, Bytes::new()).await?;
        self.parse(&answer)
    }

    /// Reads a page again, for `--watch`. While no host of a cluster leads, the next one is waited for. A
    /// page that other clients read is waited for, too.
    pub(crate) async fn get_again<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Failure> {
        let began_at = Instant::now();
        loop {
            let failure = match self.get(path).await {
                Ok(page) => return Ok(page),
                Err(failure) => failure,
            };
            let may_succeed = match self.place {
                Place::Remote(_) => !self.is_refused(),
                Place::Socket(..) | Place::Admin(_) => self.refused == Some(StatusCode::SERVICE_UNAVAILABLE),
            };
            if !may_succeed || began_at.elapsed() >= TAKEOVER_LIMIT {
                return Err(failure);
            }
            sleep(RETRY_PAUSE).await;
            // The next request fails with the same error.
            let _ = self.reconnect().await;
        }
    }

    /// Carries out an operation.
    pub(crate) async fn post<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: serde_json::Value,
    ) -> Result<T, Failure> {
        let answer = self.bytes(Method::POST, path, body.to_string().into()).await?;
        self.parse(&answer)
    }

    /// Begins to read a page that may have no end.
    pub(crate) async fn stream(&mut self, path: &str) -> Result<Response<Incoming>, Failure> {
        self.send(&Method::GET, path, Bytes::new()).await
    }

    async fn bytes(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let answer = self.send(&method, path, body).await?;
        let read = tokio::time::timeout(ANSWER_LIMIT, answer.into_body().collect()).await;
        match read {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) => Err(self.ended(error)),
            Err(_) => Err(no_answer_to(&method, &self.place)),
        }
    }

    async fn send(
        &mut self,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        self.refused = None;
        let mut answer = self.send_once(method, path, body.clone()).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let Place::Remote(remote) = &mut self.place
            && remote.credentials.renew().await?
        {
            // The connection is free only when the answer before is dropped.
            drop(answer);
            answer = self.send_once(method, path, body).await?;
        }
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        self.refused = Some(status);
        let body = answer.into_body().collect().await.map_err(|error| self.ended(error))?.to_bytes();
        Err(self.refusal(status, &body))
    }

    async fn send_once(
        &mut self,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "oarlock")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(Failure::running)?;
        if let Place::Remote(remote) = &self.place {
            request.headers_mut().insert(header::AUTHORIZATION, remote.credentials.header());
        }
        if self.sender.ready().await.is_err() {
            // The host closes connections that are idle.
            let reconnected = self.reconnect().await;
            reconnected.map_err(|failure| match &self.place {
                Place::Remote(_) => failure,
                Place::Socket(..) | Place::Admin(_) => self.has_ended(),
            })?;
        }
        match tokio::time::timeout(ANSWER_LIMIT, self.sender.send_request(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.ended(error)),
            Err(_) => Err(no_answer_to(method, &self.place)),
        }
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> Failure {
        let Ok(Refusal { error, hint }) = serde_json::from_slice(body) else {
            let text = String::from_utf8_lossy(body);
            let error = anyhow::anyhow!("{} answers {status}: {}", self.place, text.trim());
            let hint = match (&self.place, status) {
                (Place::Remote(_), StatusCode::UNAUTHORIZED) => {
                    "log in to the cluster again; kubectl auth whoami shows whether the API server accepts the login"
                }
                // An older host asks about the path, which no role names.
                (Place::Remote(_), StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) => {
                    "the host is older than this command, and has no such operation: upgrade the host"
                }
                _ => VERSION_HINT,
            };
            return Failure::running(error).hint(hint);
        };
        let error = anyhow::anyhow!(self.names.localized(&error));
        let failure = if status.is_server_error() { Failure::running(error) } else { Failure::caller(error) };
        failure.hint_if(hint)
    }

    fn parse<T: DeserializeOwned>(&self, answer: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(answer).map_err(|error| {
            let context = format!("the answer of {} cannot be read", self.place);
            Failure::running(anyhow::Error::new(error).context(context)).hint(VERSION_HINT)
        })
    }

    /// The host of a connection that worked is gone.
    fn has_ended(&self) -> Failure {
        Failure::running(anyhow::anyhow!("the host at {} has ended", self.place)).hint(AGAIN_HINT)
    }

    fn ended(&self, error: hyper::Error) -> Failure {
        let context = format!("the connection to the host at {} ended", self.place);
        Failure::running(anyhow::Error::new(error).context(context)).hint(AGAIN_HINT)
    }
}

impl Drop for ControlClient {
    fn drop(&mut self) {
        self.tasks.token().cancel();
    }
}

async fn start(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    tasks: &Tasks,
) -> hyper::Result<SendRequest<Full<Bytes>>> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tasks.spawn("control connection", Criticality::Finite, |token| async move {
        tokio::select! {
            // The request fails with the same error.
            _ = connection => {}
            () = token.cancelled() => {}
        }
    });
    Ok(sender)
}

fn socket_failure(path: &Path, chosen: Chosen, error: std::io::Error) -> Failure {
    let shown = path.display();
    let (without_hint, other_hint) = match chosen {
        Chosen::ByFlag => (
            "without --socket, the command looks for hosts by itself",
            "name the socket of a running host, or leave --socket out",
        ),
        Chosen::ByVariable => (
            "without the variable OARLOCK_SOCKET, the command looks for hosts by itself",
            "name the socket of a running host, or unset the variable OARLOCK_SOCKET",
        ),
    };
    let (text, hint) = match error.kind() {
        ErrorKind::NotFound => (format!("there is no socket {shown}"), without_hint),
        ErrorKind::ConnectionRefused if !is_socket(path) => (format!("{shown} is no socket"), other_hint),
        ErrorKind::ConnectionRefused => (format!("the host of {shown} has ended"), without_hint),
        ErrorKind::PermissionDenied => {
            (format!("{shown} may not be opened"), "run the command as the user that runs the host")
        }
        ErrorKind::InvalidInput => (
            format!("{shown} cannot be the path of a socket"),
            "a path of a socket has at most 107 bytes: use a relative path or a link",
        ),
        _ => (format!("{shown} cannot be opened"), "name the socket of a running host"),
    };
    Failure::caller(anyhow::Error::new(error).context(text)).hint(hint)
}

fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket())
}

fn no_answer(place: &Place, limit: Duration) -> Failure {
    let hint = match place {
        Place::Remote(_) => {
            "the host may be stopped or overloaded: try again; `kubectl logs` of its Pod shows more"
        }
        Place::Socket(..) | Place::Admin(_) => {
            "the host may be stopped or overloaded: try again, or name another host with --socket PATH"
        }
    };
    Failure::running(anyhow::anyhow!("{place} does not answer within {} s", limit.as_secs())).hint(hint)
}

/// Returns the failure of a request that was sent. The host may still carry out a command, and another try
/// of it may do something else: a second roll-back, for example.
fn no_answer_to(method: &Method, place: &Place) -> Failure {
    let failure = no_answer(place, ANSWER_LIMIT);
    if *method == Method::GET {
        return failure;
    }
    let hint = match place {
        Place::Remote(_) => {
            "the host may still carry out the command: look at `kubectl oarlock plugins PLUGIN` before you \
             try again"
        }
        Place::Socket(..) | Place::Admin(_) => {
            "the host may still carry out the command: look at `oarlock plugins PLUGIN` before you try again"
        }
    };
    failure.hint(hint)
}

// === impl Place ===

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path, _) => write!(f, "{}", path.display()),
            Self::Admin(address) => write!(f, "http://{address}"),
            Self::Remote(remote) => write!(f, "{}", remote.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_command_without_an_answer_may_still_be_carried_out() {
        let place = Place::Socket("/run/1.sock".into(), Chosen::ByFlag);
        insta::assert_snapshot!(no_answer_to(&Method::GET, &place).text(), @"
        /run/1.sock does not answer within 75 s
        hint: the host may be stopped or overloaded: try again, or name another host with --socket PATH
        ");
        insta::assert_snapshot!(no_answer_to(&Method::POST, &place).text(), @"
        /run/1.sock does not answer within 75 s
        hint: the host may still carry out the command: look at `oarlock plugins PLUGIN` before you try again
        ");
    }

    #[test]
    fn a_socket_that_cannot_be_used_has_a_hint_with_what_names_it() {
        let said =
            |chosen, kind: ErrorKind| socket_failure(Path::new("/no.sock"), chosen, kind.into()).text();
        for kind in [ErrorKind::NotFound, ErrorKind::ConnectionRefused] {
            let (flag, variable) = (said(Chosen::ByFlag, kind), said(Chosen::ByVariable, kind));
            assert!(flag.contains("--socket") && !flag.contains("OARLOCK_SOCKET"), "{flag}");
            assert!(variable.contains("OARLOCK_SOCKET") && !variable.contains("--socket"), "{variable}");
        }
    }

    #[tokio::test]
    async fn a_page_that_another_client_reads_is_an_error_first_and_is_waited_for_later() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = Place::Admin(listener.local_addr().unwrap().to_string());
        let held = r#"{"error": "another client reads this page", "hint": "try again in a few seconds"}"#;
        let host = async {
            for (status, body) in
                [("503 Service Unavailable", held), ("503 Service Unavailable", held), ("200 OK", "7")]
            {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await.unwrap();
                let length = body.len();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let client = async {
            let mut client = ControlClient::open(place).await.unwrap();
            let failure = client.get::<u32>("/v1/plugins").await.unwrap_err();
            let page = client.get_again::<u32>("/v1/plugins").await.unwrap();
            (format!("{failure:?}"), page)
        };
        let ((failure, page), ()) = tokio::join!(client, host);
        for part in ["another client reads this page", "try again in a few seconds", "Running"] {
            assert!(failure.contains(part), "{failure}");
        }
        assert_eq!(page, 7);
    }
}
