//! How a value is written where it lands: JSON, form, URL, header.
