//! The control endpoints of the synthetic API server, over the plainest HTTP there is.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The synthetic API server, from the side.
#[derive(Clone, Debug)]
pub struct Control {
    authority: String,
}

/// What is coming.
#[derive(Clone, Debug, Deserialize)]
pub struct Plan {
    /// How many objects there are.
    pub objects: u64,
    /// How many events come once they are let.
    pub events: u64,
    /// The resourceVersion of the last one.
    pub last_resource_version: String,
}

// === impl Control ===

impl Control {
    /// Takes the server's URL, `http://HOST:PORT`.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn new(url: &str) -> Result<Self> {
        let authority = url.strip_prefix("http://").context("the server is at http://HOST:PORT")?;
        Ok(Self { authority: authority.trim_end_matches('/').to_owned() })
    }

    /// Has the server make everything ready in a form, ends the watches of others, and returns what is coming: no more than so many
    /// events, if that is said.
    ///
    /// # Errors
    ///
    /// When the server does not answer as it should.
    pub fn prepare(&self, resource: &str, form: &str, events: Option<u64>) -> Result<Plan> {
        self.post("reset")?;
        let events = events.map_or_else(String::new, |events| format!("&events={events}"));
        self.get(&format!("/control/{resource}/plan?form={form}{events}"))
    }

    /// Asks for JSON.
    ///
    /// # Errors
    ///
    /// When the server does not answer with such.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        serde_json::from_str(&self.ask("GET", path)?)
            .with_context(|| format!("GET {path}: not what was expected"))
    }

    /// Tells the server to do something: `start`, `reset` or `expire`.
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
        // 1.0, so that the body comes as it is and ends with the connection.
        write!(connection, "{method} {path} HTTP/1.0\r\nContent-Length: 0\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer)
    }
}
