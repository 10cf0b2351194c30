//! The only place that prints. Tables, JSON, YAML and names on standard output; complaints on standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::IsTerminal;

use clap::ValueEnum;
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns for people.
    #[default]
    Table,
    /// A plain array (or one object).
    Json,
    /// The same as YAML.
    Yaml,
    /// `<resource>/<name>`, one a line.
    Name,
}

/// Prints a line on standard output. A closed pipe ends the process quietly, as for other Unix tools.
pub(crate) fn line(text: impl std::fmt::Display) {
    use std::io::Write;
    if writeln!(std::io::stdout(), "{text}").is_err() {
        std::process::exit(0);
    }
}

/// Prints a line on standard error.
pub(crate) fn complain(text: impl std::fmt::Display) {
    eprintln!("{text}");
}

/// Prints any value as JSON or YAML.
pub(crate) fn structured<T: Serialize>(format: Format, value: &T) -> anyhow::Result<()> {
    match format {
        Format::Yaml => line(serde_saphyr::to_string(value)?.trim_end()),
        Format::Json | Format::Table | Format::Name => line(serde_json::to_string_pretty(value)?),
    }
    Ok(())
}

/// Prints columns as `kubectl` does.
pub(crate) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    for text in table.lines() {
        line(text.trim_end());
    }
}

/// Whether standard output takes colours and cursor movement: a terminal, and `NO_COLOR` is not set.
pub(crate) fn is_interactive() -> bool {
    std::io::stdout().is_terminal()
}

/// Colours, off unless standard output is a terminal, and with `NO_COLOR`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    on: bool,
}

impl Palette {
    /// Decides once; `no_color` is the variable of that name (any value that is not empty turns colours off).
    pub(crate) fn detect(no_color: Option<&str>) -> Self {
        Self {
            on: is_interactive() && no_color.is_none_or(str::is_empty),
        }
    }

    /// No colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn busy(self, text: &str) -> String {
        self.paint("36", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }
}
