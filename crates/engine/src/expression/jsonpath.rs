//! Result mappings by JSONPath (RFC 9535).

/// A parsed result mapping.
#[derive(Clone, Debug)]
pub struct ResultMapping {}
