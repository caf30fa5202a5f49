//! The two exposition formats of Prometheus, and the choice of one for a request.
//!
//! Both formats allow any character in a label value. Control characters in the values of guests are escaped
//! nevertheless: see [`guests`](super::guests).

use std::fmt::{self, Write};

use super::page::Page;

/// A format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposition {
    /// The text format, version 0.0.4.
    Text,
    /// The text format of OpenMetrics, with the version for its content type.
    OpenMetrics(&'static str),
}

/// Converts OpenMetrics to the text format, line by line: a family has the name of its samples, and the page
/// has no end mark.
struct AsText<'p> {
    page: &'p mut Page,
    /// The begin of a line.
    line: String,
    /// The help of the family whose type follows.
    help: Option<String>,
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

    /// Returns a page in this format, of what is written to it as OpenMetrics.
    pub(super) fn page(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), fmt::Error>,
    ) -> Result<Page, fmt::Error> {
        let mut page = Page::default();
        match self {
            Self::OpenMetrics(_) => write(&mut page)?,
            Self::Text => {
                let mut text = AsText { page: &mut page, line: String::new(), help: None };
                write(&mut text)?;
            }
        }
        Ok(page)
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

// === impl AsText ===

impl AsText<'_> {
    fn end_line(&mut self) -> fmt::Result {
        let Self { page, line, help } = self;
        if let Some(described) = line.strip_prefix("# HELP ") {
            *help = described.split_once(' ').map(|(_, text)| text.to_owned());
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some(help) = help.take() {
                writeln!(page, "# HELP {name}{suffix} {help}")?;
            }
            writeln!(page, "# TYPE {name}{suffix} {kind}")?;
        } else if !line.starts_with('#') {
            writeln!(page, "{line}")?;
        }
        line.clear();
        Ok(())
    }
}

impl Write for AsText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut lines = text.split('\n');
        self.line.push_str(lines.next().unwrap_or_default());
        for line in lines {
            self.end_line()?;
            self.line.push_str(line);
        }
        Ok(())
    }
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
        let written = |pieces: &[&str]| {
            let page = Exposition::Text.page(|page| pieces.iter().try_for_each(|it| page.write_str(it)));
            page.unwrap().into_text()
        };
        let letters: Vec<_> = page.split("").collect();
        assert_eq!(written(&[page]), written(&letters), "written piece by piece");
        insta::assert_snapshot!(written(&[page]), @r##"
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
