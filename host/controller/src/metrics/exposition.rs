//! The two exposition formats of Prometheus, and the choice of one for a request.
//!
//! Both formats allow any character in a label value. Control characters in the values of guests are escaped
//! nevertheless: see [`guests`](super::guests).

use std::fmt::Write;

/// A format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// The text format, version 0.0.4.
    Text,
    /// The text format of OpenMetrics, with the version for its content type.
    OpenMetrics(&'static str),
}

/// One media range of an `Accept` header.
struct Accepted<'h> {
    media_type: &'h str,
    version: Option<&'h str>,
    quality: f32,
}

// === impl Exposition ===

impl Exposition {
    /// Returns the format that an `Accept` header prefers; the text format if it names neither.
    pub(crate) fn accepted_by(header: &str) -> Self {
        let mut accepted: Vec<_> = header.split(',').map(Accepted::parse).collect();
        // The sort is stable: of equal qualities the first wins.
        accepted.sort_by(|one, other| other.quality.total_cmp(&one.quality));
        let acceptable = accepted.iter().filter(|it| it.quality > 0.0);
        acceptable.filter_map(Accepted::exposition).next().unwrap_or(Self::Text)
    }

    /// Returns the format's `Content-Type`.
    pub(crate) fn content_type(self) -> String {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8".to_owned(),
            Self::OpenMetrics(version) => {
                format!("application/openmetrics-text; version={version}; charset=utf-8")
            }
        }
    }

    /// Converts a page of OpenMetrics to this format.
    pub(super) fn of(self, page: String) -> String {
        match self {
            Self::Text => as_text(&page),
            Self::OpenMetrics(_) => page,
        }
    }
}

// === impl Accepted ===

impl<'h> Accepted<'h> {
    fn parse(clause: &'h str) -> Self {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let mut accepted = Self { media_type, version: None, quality: 1.0 };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "q" => accepted.quality = value.trim().parse().unwrap_or(0.0),
                "version" => accepted.version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        accepted
    }

    fn exposition(&self) -> Option<Exposition> {
        let is = |media_type: &str| self.media_type.eq_ignore_ascii_case(media_type);
        match self.version {
            None | Some("1.0.0") if is("application/openmetrics-text") => {
                Some(Exposition::OpenMetrics("1.0.0"))
            }
            Some("0.0.1") if is("application/openmetrics-text") => Some(Exposition::OpenMetrics("0.0.1")),
            None | Some("0.0.4") if is("text/plain") || is("text/*") || is("*/*") => Some(Exposition::Text),
            _ => None,
        }
    }
}

/// Converts OpenMetrics to the text format: a family has the name of its samples, and the page has no end
/// mark.
fn as_text(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = typed.split_once(' ') else { continue };
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take() {
                // Writing to a text does not fail.
                let _ = writeln!(text, "# HELP {name}{suffix} {help}");
            }
            let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accept_header_chooses_the_format() {
        let open = Exposition::OpenMetrics("1.0.0");
        for (header, expected) in [
            ("", Exposition::Text),
            ("*/*", Exposition::Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Exposition::Text),
            ("text/plain", Exposition::Text),
            ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", Exposition::Text),
            ("application/openmetrics-text", open),
            ("application/openmetrics-text; version=0.0.1", Exposition::OpenMetrics("0.0.1")),
            ("Application/OpenMetrics-Text; version=\"1.0.0\"", open),
            // The header that Prometheus sends.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                open,
            ),
            ("text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5", Exposition::Text),
            ("application/openmetrics-text;q=0,text/plain;q=0.1", Exposition::Text),
            ("application/openmetrics-text;version=9,text/plain", Exposition::Text),
            ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily", Exposition::Text),
            ("application/openmetrics-text;q=nonsense", Exposition::Text),
        ] {
            assert_eq!(Exposition::accepted_by(header), expected, "{header:?}");
        }
    }

    #[test]
    fn families_of_the_text_format_have_the_names_of_their_samples() {
        let page = "# HELP a How often.\n# TYPE a counter\na_total{x=\"# HELP b\"} 1\n# HELP b What.\n# TYPE b info\n\
                    b_info{v=\"1\"} 1\n# HELP c_seconds C.\n# TYPE c_seconds gauge\n# UNIT c_seconds seconds\nc_seconds 2\n\
                    # HELP d D.\n# TYPE d unknown\nd 1\n# EOF\n";
        insta::assert_snapshot!(Exposition::Text.of(page.to_owned()), @r##"
        # HELP a_total How often.
        # TYPE a_total counter
        a_total{x="# HELP b"} 1
        # HELP b_info What.
        # TYPE b_info gauge
        b_info{v="1"} 1
        # HELP c_seconds C.
        # TYPE c_seconds gauge
        c_seconds 2
        # HELP d D.
        # TYPE d untyped
        d 1
        "##);
    }
}
