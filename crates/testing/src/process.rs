//! Binaries of this workspace, run as processes by tests.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A running binary; killed when dropped.
pub struct Process {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// Where a binary of this workspace was built: beside the test that runs.
///
/// # Panics
/// When it was not built.
pub fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("tests run from target/<profile>/deps");
    let path = folder.join(name);
    assert!(
        path.exists(),
        "{} is not built; run `cargo xtask test`, or `cargo build --workspace --bins` first",
        path.display()
    );
    path
}

impl Process {
    /// Starts a binary of this workspace; its standard error goes to the test's.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(name: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(binary(name));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let stdout = child.stdout.take().expect("standard output is piped");
        Self {
            name: name.to_owned(),
            child,
            lines: BufReader::new(stdout).lines(),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the process was not waited for yet")
    }

    /// The next line of standard output for which `pick` gives something.
    ///
    /// # Panics
    /// When the deadline passes or the output ends first.
    pub async fn line<T>(
        &mut self,
        what: &str,
        deadline: Duration,
        mut pick: impl FnMut(&str) -> Option<T>,
    ) -> T {
        let found = tokio::time::timeout(deadline, async {
            let mut seen = Vec::new();
            loop {
                match self
                    .lines
                    .next_line()
                    .await
                    .expect("standard output is text")
                {
                    Some(line) => match pick(&line) {
                        Some(found) => return found,
                        None => seen.push(line),
                    },
                    None => panic!(
                        "{} ended before {what}; it said:\n{}",
                        self.name,
                        seen.join("\n")
                    ),
                }
            }
        });
        found
            .await
            .unwrap_or_else(|_| panic!("waited {deadline:?} in vain for {what} from {}", self.name))
    }

    /// The next JSON line for which `pick` gives something.
    ///
    /// # Panics
    /// As [`Process::line`].
    pub async fn json<T>(
        &mut self,
        what: &str,
        deadline: Duration,
        mut pick: impl FnMut(&serde_json::Value) -> Option<T>,
    ) -> T {
        self.line(what, deadline, |line| {
            serde_json::from_str(line)
                .ok()
                .and_then(|value| pick(&value))
        })
        .await
    }

    /// Reads the rest of the output away, so that the process never waits for its reader.
    pub fn drain(mut self) -> Running {
        let reader =
            tokio::spawn(async move { while let Ok(Some(_)) = self.lines.next_line().await {} });
        Running {
            child: self.child,
            reader,
        }
    }

    /// SIGKILL, and waits for the end.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the process can be killed");
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// When the deadline passes.
    pub async fn ended(&mut self, deadline: Duration) -> ExitStatus {
        tokio::time::timeout(deadline, self.child.wait())
            .await
            .unwrap_or_else(|_| panic!("{} did not end within {deadline:?}", self.name))
            .expect("the process can be waited for")
    }
}

/// A process whose output nobody reads any more.
pub struct Running {
    child: Child,
    reader: tokio::task::JoinHandle<()>,
}

impl Running {
    /// SIGKILL, and waits for the end.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the process can be killed");
        self.reader.abort();
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the process was not waited for yet")
    }
}
