//! The single-pass template.

/// Where a template's text lands, which decides how values are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Plain text: transform mappings, parameters of manual runs.
    Text,
    /// A request URL.
    Url,
    /// A header value: CR, LF and NUL fail.
    Header,
    /// A request body: JSON placement when its text is JSON, form placement when the Content-Type says so.
    Body,
}

/// A parsed template.
#[derive(Clone, Debug)]
pub struct Template {}
