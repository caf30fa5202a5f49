//! The transport alone: hyper reads the same watch, and the program only finds the ends of lines.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use oarlock_measure::{Control, Meter, Record};
use tokio::net::TcpStream;
use tokio::task::block_in_place;

/// The run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The synthetic API server.
    #[arg(long)]
    server: String,
    /// The greatest number of events.
    #[arg(long)]
    events: Option<u64>,
    /// Events a second, each sent alone; 0 means as fast as they are read.
    #[arg(long, default_value_t = 0)]
    rate: u64,
}

pub(crate) async fn run(args: Args) -> Result<Record> {
    let Args { server, events, rate } = args;
    let control = Control::new(&server)?;
    let plan = control.prepare("pods", "json", events)?;
    let authority = server.trim_start_matches("http://");
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut meter = Meter::begin()?;
    let request = Request::get("/api/v1/pods?watch=true&resourceVersion=10000000")
        .header(http::header::HOST, authority)
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    ensure!(response.status().is_success(), "{}", response.status());
    let mut body = response.into_body();
    meter.begin_events();
    block_in_place(|| control.post(&format!("start?rate={rate}")))?;
    let mut lines = 0;
    while lines < plan.events {
        let frame = body.frame().await.context("the watch ended")??;
        if let Ok(data) = frame.into_data() {
            lines += memchr::memchr_iter(b'\n', &data).count() as u64;
        }
    }
    block_in_place(|| meter.events_ended(plan.events))?;
    Ok(meter.record())
}
