//! An HTTP server that answers what a test says, and that may misbehave.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

/// Whether the clock of this runtime is paused. From then on it jumps to the next deadline when nothing else
/// happens, so only a server that has nothing more to send pauses it.
#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<AtomicBool>);

impl Clock {
    fn pause(&self) {
        if !self.0.swap(true, Ordering::SeqCst) {
            tokio::time::pause();
        }
    }

    pub(crate) fn resume(&self) {
        if self.0.swap(false, Ordering::SeqCst) {
            tokio::time::resume();
        }
    }
}

/// What the server answers.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Status, headers and content.
    Full(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Status 401 with this challenge, unless the request has this header `Authorization`; then the answer.
    Authorized(&'static str, String, Box<Answer>),
    /// No answer.
    Never,
    /// No answer yet: the clock goes on.
    Late,
    /// Half of the content, and then nothing.
    Stalls(Vec<u8>),
    /// An announced length of 10 GB.
    Announces10Gb,
    /// Content without an end.
    Endless,
    /// The connection is closed in the middle of the content.
    Closes(Vec<u8>),
}

/// Answers by method and path, such as `GET /v2/a/b`; by path alone for `GET` and `HEAD`.
pub(crate) type Answers = Arc<Mutex<HashMap<String, Answer>>>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) answers: Answers,
    /// The method and path of each request.
    log: Arc<Mutex<Vec<String>>>,
    /// The `Authorization` of each request that had one.
    pub(crate) authorizations: Arc<Mutex<Vec<String>>>,
    pub(crate) clock: Clock,
    tasks: JoinSet<()>,
}

/// What all connections of a server share.
#[derive(Clone, Default)]
struct Shared {
    answers: Answers,
    log: Arc<Mutex<Vec<String>>>,
    authorizations: Arc<Mutex<Vec<String>>>,
    clock: Clock,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(crate) async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Shared::default();
        let Shared { answers, log, authorizations, clock } = shared.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = shared.clone();
                let tls = tls.clone();
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, &shared).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &shared).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, answers, log, authorizations, clock, tasks }
    }

    pub(crate) fn answer(&self, request: &str, answer: Answer) {
        self.answers.lock().insert(request.to_owned(), answer);
    }

    /// Answers every request alike.
    pub(crate) fn answer_all(&self, answer: Answer) {
        let mut answers = self.answers.lock();
        answers.clear();
        answers.insert("*".to_owned(), answer);
    }

    /// Returns the requests since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }

    /// Stops listening, and closes all connections.
    pub(crate) async fn stop(&mut self) {
        self.tasks.shutdown().await;
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    Shared { answers, log, authorizations, clock }: &Shared,
) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match stream.read_line(&mut head).await {
                Ok(0) => return,
                // Something that is not text, such as TLS.
                Err(_) => {
                    let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
                    return;
                }
                Ok(_) => {}
            }
        }
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        let authorization =
            head.lines().find_map(|line| line.strip_prefix("authorization: ")).map(str::to_owned);
        log.lock().push(format!("{method} {path}"));
        authorizations.lock().extend(authorization.clone());
        let answer = {
            let answers = answers.lock();
            let found = answers.get(&format!("{method} {path}")).or_else(|| answers.get(&path));
            found.or_else(|| answers.get("*")).cloned()
        };
        let answer = answer.unwrap_or(Answer::Full(404, Vec::new(), Vec::new()));
        if write(&mut stream, &method, answer, authorization, clock).await.is_err() {
            return;
        }
    }
}

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    method: &str,
    answer: Answer,
    authorization: Option<String>,
    clock: &Clock,
) -> std::io::Result<()> {
    let closed = || Err(std::io::ErrorKind::ConnectionAborted.into());
    let head = |length: u64| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    match answer {
        Answer::Authorized(challenge, wanted, answer) => {
            let answer = if authorization.as_ref() == Some(&wanted) {
                *answer
            } else {
                Answer::Full(401, vec![("www-authenticate", challenge.to_owned())], Vec::new())
            };
            return Box::pin(write(stream, method, answer, authorization, clock)).await;
        }
        Answer::Full(status, headers, body) => {
            let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
            for (name, value) in headers {
                head += &format!("{name}: {value}\r\n");
            }
            stream.write_all(format!("{head}\r\n").as_bytes()).await?;
            if method != "HEAD" {
                stream.write_all(&body).await?;
            }
        }
        Answer::Never => {
            clock.pause();
            std::future::pending().await
        }
        Answer::Late => std::future::pending().await,
        Answer::Stalls(body) => {
            stream.write_all(head(body.len() as u64).as_bytes()).await?;
            stream.write_all(&body[..body.len() / 2]).await?;
            stream.flush().await?;
            clock.pause();
            std::future::pending().await
        }
        Answer::Announces10Gb => {
            stream.write_all(head(10 << 30).as_bytes()).await?;
            stream.flush().await?;
            std::future::pending().await
        }
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            let chunk = [b"10000\r\n".to_vec(), vec![0; 0x10000], b"\r\n".to_vec()].concat();
            loop {
                stream.write_all(&chunk).await?;
            }
        }
        Answer::Closes(body) => {
            stream.write_all(head(body.len() as u64).as_bytes()).await?;
            stream.write_all(&body[..body.len() / 2]).await?;
            stream.flush().await?;
            return closed();
        }
    }
    stream.flush().await
}
