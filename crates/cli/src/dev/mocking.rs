//! The `mocks.yaml` files beside the manifests: found, shown, and read again when they change.

use std::path::PathBuf;

use tokio::sync::mpsc;

use crate::manifest::Complaint;
use crate::mocks::{Exchange, MockError, Mocks, Shown};

/// The name of the file.
const FILE: &str = "mocks.yaml";

/// Mocks, and the folders whose files hold them.
pub(crate) struct Mocking {
    folders: Vec<PathBuf>,
    mocks: Mocks,
}

impl Mocking {
    /// Reads the files of the given folders. Each mocked request is told to `shown`.
    ///
    /// # Errors
    /// A file that cannot be read or understood, with the line.
    pub(crate) fn load(
        folders: Vec<PathBuf>,
        shown: Option<mpsc::UnboundedSender<String>>,
    ) -> Result<Self, Complaint> {
        let mut mocks = Mocks::load_all(&files(&folders)).map_err(complaint)?;
        if let Some(shown) = shown {
            // Whoever shows them may be gone already.
            mocks = mocks.showing(move |exchange| drop(shown.send(line(exchange))));
        }
        Ok(Self { folders, mocks })
    }

    /// Answers for the executor; shares what a reload brings.
    pub(crate) fn mocks(&self) -> Mocks {
        self.mocks.clone()
    }

    /// Reads the files again. With a mistake the last good version stays.
    ///
    /// # Errors
    /// As [`Mocking::load`].
    pub(crate) fn reload(&self) -> Result<(), Complaint> {
        let newer = Mocks::load_all(&files(&self.folders)).map_err(complaint)?;
        self.mocks.replace(&newer);
        Ok(())
    }
}

/// The files of the folders that have one.
pub(crate) fn files(folders: &[PathBuf]) -> Vec<PathBuf> {
    folders
        .iter()
        .map(|folder| folder.join(FILE))
        .filter(|file| file.is_file())
        .collect()
}

fn complaint(error: MockError) -> Complaint {
    Complaint {
        file: error.file.into(),
        line: error.line.unwrap_or(0),
        message: error.message,
    }
}

/// A request and its answer: one line, then one for each header of the request.
fn line(exchange: &Exchange) -> String {
    let Exchange {
        method,
        url,
        headers,
        body,
        route,
        answer,
    } = exchange;
    let answer = match answer {
        Shown::Response {
            status,
            headers: _,
            body,
        } => format!("{status} {}", String::from_utf8_lossy(body)),
        Shown::Failure(text) => text.clone(),
    };
    let route = route
        .as_ref()
        .map(|route| format!("  ({route})"))
        .unwrap_or_default();
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("\n            {name}: {value}"))
        .collect();
    format!(
        "{method} {url} {} -> {answer}{route}{headers}",
        String::from_utf8_lossy(body)
    )
}
