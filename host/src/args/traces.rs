//! Where traces are exported to.

use std::path::PathBuf;

use clap::{Args as ClapArgs, builder::FalseyValueParser};
use oarlock_controller::{
    regular_file,
    traces::{Config, Error},
};

use crate::failure::Failure;

/// The arguments for traces, with the variables of OpenTelemetry's specification.
#[derive(Clone, Debug, Default, ClapArgs)]
#[command(next_help_heading = "Traces")]
pub(crate) struct TraceArgs {
    /// Exports traces of sampled events to the OpenTelemetry collector at this URL, such as
    /// http://collector:4318, with OTLP over HTTP. Otherwise that of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
    /// OTEL_EXPORTER_OTLP_ENDPOINT. Without any of them there are no traces.
    #[arg(long, value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,

    /// The URL of the traces, with its path.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", hide = true)]
    pub(crate) otlp_traces_endpoint_variable: Option<String>,

    /// As --otlp-endpoint.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide = true)]
    pub(crate) otlp_endpoint_variable: Option<String>,

    /// `true`: no traces, whatever the other variables say.
    #[arg(long, env = "OTEL_SDK_DISABLED", hide = true, value_parser = FalseyValueParser::new())]
    pub(crate) otlp_disabled: bool,

    /// The share of the watch events that are traced, from 0 to 1.
    #[arg(
        long,
        env = "OTEL_TRACES_SAMPLER_ARG",
        hide_env_values = true,
        default_value_t = 0.01,
        value_name = "RATIO"
    )]
    pub(crate) trace_ratio: f64,

    /// A PEM file with certificate authorities that an https endpoint may have, beside those of the system.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", hide_env_values = true, value_name = "FILE")]
    pub(crate) otlp_certificate_authority: Option<PathBuf>,
}

/// The longest file of certificate authorities.
const LONGEST_FILE: u64 = 4 << 20;

// === impl TraceArgs ===

impl TraceArgs {
    /// Returns where traces are exported to, if they are.
    pub(crate) fn config(&self) -> Result<Option<Config>, Failure> {
        let Self {
            otlp_endpoint,
            otlp_traces_endpoint_variable,
            otlp_endpoint_variable,
            otlp_disabled,
            trace_ratio,
            otlp_certificate_authority,
        } = self;
        // A variable that is empty counts as not set.
        let given = |value: &Option<String>| value.clone().filter(|value| !value.is_empty());
        let base = given(otlp_endpoint);
        let traces = given(otlp_traces_endpoint_variable);
        let config = match (base, traces, given(otlp_endpoint_variable)) {
            _ if *otlp_disabled => return Ok(None),
            (Some(base), _, _) | (None, None, Some(base)) => Config::of_collector(&base, *trace_ratio),
            (None, Some(url), _) => Config::new(&url, *trace_ratio),
            (None, None, None) => return Ok(None),
        };
        let config = config.map_err(refused)?;
        let file = otlp_certificate_authority.as_ref().filter(|file| !file.as_os_str().is_empty());
        let Some(file) = file else { return Ok(Some(config)) };
        let pem = regular_file::read(file, LONGEST_FILE).map_err(|error| {
            let context = format!("--otlp-certificate-authority {} cannot be read", file.display());
            Failure::caller(anyhow::Error::new(error).context(context)).hint("name a file in PEM")
        })?;
        config.trusting(&pem).map(Some).map_err(refused)
    }
}

fn refused(error: Error) -> Failure {
    let hint = match &error {
        Error::Endpoint { .. } => "write it as http://collector:4318, with the port of OTLP over HTTP",
        Error::Credentials { .. } => "give them as a header, in OTEL_EXPORTER_OTLP_HEADERS",
        Error::Ratio(_) => "1 traces every event, 0.01 one of a hundred",
        Error::Authorities(_) => "name a file with certificates in PEM",
        Error::Exporter(_) => "correct the variables that begin with OTEL_EXPORTER_OTLP_",
    };
    Failure::caller(error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(args: TraceArgs) -> Option<String> {
        let config = args.config().unwrap();
        config.map(|config| config.endpoint().to_owned())
    }

    #[test]
    fn the_flag_precedes_the_variable_for_traces_which_precedes_the_general_one() {
        let some = |text: &str| Some(text.to_owned());
        let none = TraceArgs { trace_ratio: 1.0, ..TraceArgs::default() };
        assert_eq!(url(none.clone()), None);
        let general = TraceArgs { otlp_endpoint_variable: some("http://a:1"), ..none.clone() };
        assert_eq!(url(general.clone()), some("http://a:1/v1/traces"));
        let both = TraceArgs { otlp_traces_endpoint_variable: some("http://b:1/x"), ..general };
        assert_eq!(url(both.clone()), some("http://b:1/x"));
        let all = TraceArgs { otlp_endpoint: some("http://c:1"), ..both };
        assert_eq!(url(all.clone()), some("http://c:1/v1/traces"));
        assert_eq!(url(TraceArgs { otlp_disabled: true, ..all }), None);
        let empty = TraceArgs { otlp_endpoint_variable: some(""), ..none };
        assert_eq!(url(empty), None);
    }

    #[test]
    fn bad_input_is_refused_with_what_to_write_instead() {
        let args = TraceArgs {
            otlp_endpoint: Some("collector:4317".to_owned()),
            trace_ratio: 0.5,
            ..TraceArgs::default()
        };
        let refused = args.config().unwrap_err().text();
        assert!(refused.contains("its scheme is collector"), "{refused}");
        assert!(refused.contains("hint: write it as http://collector:4318"), "{refused}");
        let args = TraceArgs {
            otlp_endpoint: Some("https://collector".to_owned()),
            otlp_certificate_authority: Some("/no/such/file".into()),
            ..args
        };
        let refused = args.config().unwrap_err().text();
        assert!(refused.contains("--otlp-certificate-authority /no/such/file cannot be read"), "{refused}");
    }
}
