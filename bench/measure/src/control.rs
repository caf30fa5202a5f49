//! The client of the control endpoints of the synthetic API server, over HTTP/1.0.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The control endpoints of the synthetic API server.
#[derive(Clone, Debug)]
pub struct Control {
    authority: String,
}

/// The planned run.
#[derive(Clone, Debug, Deserialize)]
pub struct Plan {
    /// The number of objects.
    pub objects: u64,
    /// The number of events after the start.
    pub events: u64,
    /// The resourceVersion of the last event.
    pub last_resource_version: String,
}

// === impl Control ===

impl Control {
    /// Returns a client for the URL `http://HOST:PORT`.
    ///
    /// # Errors
    ///
    /// When the URL has another form.
    pub fn new(url: &str) -> Result<Self> {
        let authority = url.strip_prefix("http://").context("the server is at http://HOST:PORT")?;
        Ok(Self { authority: authority.trim_end_matches('/').to_owned() })
    }

    /// Makes the server prepare a run, ends other watches, and returns the plan, with at most this many
    /// events.
    ///
    /// # Errors
    ///
    /// When the answer of the server is not valid.
    pub fn prepare(&self, resource: &str, form: &str, events: Option<u64>) -> Result<Plan> {
        self.post("reset")?;
        let events = events.map_or_else(String::new, |events| format!("&events={events}"));
        self.get(&format!("/control/{resource}/plan?form={form}{events}"))
    }

    /// Requests JSON.
    ///
    /// # Errors
    ///
    /// When the answer is not JSON of this type.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        serde_json::from_str(&self.ask("GET", path)?).with_context(|| format!("GET {path}: unexpected JSON"))
    }

    /// Requests text.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub fn get_text(&self, path: &str) -> Result<String> {
        self.ask("GET", path)
    }

    /// Sends a command: `start`, `reset` or `expire`.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
    pub fn post(&self, what: &str) -> Result<()> {
        self.ask("POST", &format!("/control/{what}")).map(drop)
    }

    fn ask(&self, method: &str, path: &str) -> Result<String> {
        let asked = format!("{method} {path}");
        let answer = self.exchange(method, path).with_context(|| asked.clone())?;
        let (head, body) = answer.split_once("\r\n\r\n").with_context(|| format!("{asked}: no answer"))?;
        ensure!(head.starts_with("HTTP/1.0 200"), "{asked}: {head}");
        Ok(body.to_owned())
    }

    fn exchange(&self, method: &str, path: &str) -> std::io::Result<String> {
        let mut connection = TcpStream::connect(&self.authority)?;
        // With HTTP/1.0 the body has no chunks and ends with the connection.
        write!(connection, "{method} {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    }
}
