//! Writes the kubeconfig that kubectl and the other commands use.

use std::io::Write;
use std::path::Path;

use crate::failure::Failure;

/// The first line of every kubeconfig that is written here.
const MARK: &str = "# Written by `kubezap dev` at every start.";

/// Writes the file so that only its owner can read it; it carries the token.
///
/// # Errors
/// A folder or file that cannot be written; a file that is somebody's kubeconfig for another cluster.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let unwritable = |error: std::io::Error| {
        Failure::Usage(format!(
            "cannot write the kubeconfig {}: {error}; choose another file with --kubeconfig",
            path.display()
        ))
    };
    if std::fs::read_to_string(path).is_ok_and(|text| !text.is_empty() && !text.starts_with(MARK)) {
        return Err(Failure::Usage(format!(
            "{} is a kubeconfig that `kubezap dev` did not write: it is left alone; choose another file with --kubeconfig",
            path.display()
        )));
    }
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder).map_err(unwritable)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .and_then(|mut file| write!(file, "{MARK}\n{text}"))
        .map_err(unwritable)
}
