//! Notices that a manifest file changed, by looking at names, sizes and times twice a second.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;

use super::mocking;
use crate::manifest;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_millis(500);

/// What the files looked like.
#[derive(PartialEq)]
struct Snapshot(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

/// Watches files and folders; something comes out when they differ from the last time and have been still for one
/// interval.
pub(crate) fn watch(paths: Vec<PathBuf>) -> mpsc::Receiver<()> {
    let (tell, changes) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut told = Snapshot::take(&paths);
        let mut seen = Snapshot::take(&paths);
        while !tell.is_closed() {
            tokio::time::sleep(INTERVAL).await;
            let now = Snapshot::take(&paths);
            if now != told && now == seen {
                // A full channel already tells that something changed.
                let _ = tell.try_send(());
                told = Snapshot::take(&paths);
            }
            seen = now;
        }
    });
    changes
}

impl Snapshot {
    fn take(paths: &[PathBuf]) -> Self {
        let mut files = manifest::find(paths).unwrap_or_default();
        files.extend(mocking::files(paths));
        Self(
            files
                .into_iter()
                .filter_map(|file| {
                    let metadata = std::fs::metadata(&file).ok()?;
                    Some((file, (metadata.len(), metadata.modified().ok())))
                })
                .collect(),
        )
    }
}
