//! The NGINX process: started once, kept running, told to reload and to end.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use nginx_render::HTTP_SOCKETS;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::{
    process::{Child, Command},
    sync::{mpsc, watch},
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tracing::{error, info, warn};

use super::{census, files, log::ErrorLog};

/// How long to wait before the second restart in a row; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest wait before a restart.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long a process has to run for its end to count as the first one again.
const STEADY: Duration = Duration::from_secs(30);

/// How long a process that was told to end at once may take before it is killed.
const END_AT_ONCE: Duration = Duration::from_secs(2);

/// What the process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It was not started yet, or was told to end and has.
    Stopped,
    /// It runs.
    Running {
        /// Its process ID.
        pid: u32,
        /// How often it has been started, this time included.
        start: u64,
    },
    /// It has ended unasked and is about to be started again.
    Restarting,
}

/// Why NGINX could not be told something.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It does not run.
    #[error("nginx does not run")]
    NotRunning,
    /// The program cannot be run.
    #[error("cannot run {}", binary.display())]
    Spawn {
        /// The program.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The signal could not be sent.
    #[error("cannot send a signal to nginx")]
    Signal {
        /// What the system said.
        source: io::Error,
    },
}

/// A handle on the supervised process.
#[derive(Debug)]
pub struct Process {
    program: Program,
    orders: mpsc::Sender<Order>,
    state: watch::Receiver<State>,
    log: ErrorLog,
    /// Taken by the first start.
    supervisor: std::sync::Mutex<Option<Supervisor>>,
}

/// What to run.
#[derive(Clone, Debug)]
struct Program {
    binary: PathBuf,
    configuration: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Load the configuration anew, or start at once with it.
    Reload,
    /// Open the logs anew.
    Reopen,
    /// Finish what is being done and end.
    Quit,
    /// End at once.
    Terminate,
}

impl Process {
    /// A process that is not started yet.
    #[must_use]
    pub fn new(binary: &Path, configuration: &Path) -> Self {
        let program = Program {
            binary: binary.to_owned(),
            configuration: configuration.to_owned(),
        };
        let (orders, ordered) = mpsc::channel(8);
        let (state, observed) = watch::channel(State::Stopped);
        let log = ErrorLog::default();
        let supervisor = Supervisor {
            program: program.clone(),
            orders: ordered,
            state,
            log: log.clone(),
            starts: 0,
        };
        Self {
            program,
            orders,
            state: observed,
            log,
            supervisor: std::sync::Mutex::new(Some(supervisor)),
        }
    }

    /// The program that is run.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.program.binary
    }

    /// What the process is doing, now and later.
    #[must_use]
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.clone()
    }

    /// The process ID of the master, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        match *self.state.borrow() {
            State::Running { pid, .. } => Some(pid),
            State::Stopped | State::Restarting => None,
        }
    }

    pub(crate) fn log(&self) -> &ErrorLog {
        &self.log
    }

    /// Ends an NGINX that an earlier controller left when it was killed: it holds the ports.
    pub async fn end_leftovers(&self) {
        end_leftovers(&self.program.configuration).await;
    }

    /// Starts the process and keeps it running from now on. Later calls do nothing.
    pub fn start(&self) {
        let supervisor = {
            let mut supervisor = self.supervisor.lock();
            supervisor
                .as_mut()
                .ok()
                .and_then(|supervisor| supervisor.take())
        };
        if let Some(supervisor) = supervisor {
            tokio::spawn(supervisor.run());
        }
    }

    /// Whether the process was started, be it running at the moment or not.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.supervisor
            .lock()
            .is_ok_and(|supervisor| supervisor.is_none())
    }

    /// Has the process load its configuration anew; one that has ended unasked is started with it at once.
    ///
    /// # Errors
    ///
    /// When it has ended for good.
    pub async fn reload(&self) -> Result<(), ProcessError> {
        self.order(Order::Reload).await
    }

    /// Has the process open its logs anew; one that does not run at the moment does so when it is started.
    ///
    /// # Errors
    ///
    /// When it has ended for good.
    pub async fn reopen_logs(&self) -> Result<(), ProcessError> {
        self.order(Order::Reopen).await
    }

    /// Has the process finish its requests and end; what is not finished in time is cut off.
    pub async fn quit(&self, within: Duration) {
        if !self.is_started() {
            return;
        }
        let deadline = Instant::now() + within;
        // It fails only when the supervisor has ended, and the process before it.
        let _ended = self.order(Order::Quit).await;
        let mut state = self.state.clone();
        let stopped = |state: &State| *state == State::Stopped;
        if timeout_at(deadline, state.wait_for(stopped)).await.is_ok() {
            return;
        }
        warn!(
            ?within,
            "nginx has not finished its requests in time; ending it"
        );
        let _ended = self.order(Order::Terminate).await;
        // The supervisor kills what does not obey, so that this ends.
        let _gone = state.wait_for(stopped).await;
    }

    async fn order(&self, order: Order) -> Result<(), ProcessError> {
        self.orders
            .send(order)
            .await
            .map_err(|_gone| ProcessError::NotRunning)
    }
}

/// Owns the process, so that no signal is ever sent to another one that has got its number.
#[derive(Debug)]
struct Supervisor {
    program: Program,
    orders: mpsc::Receiver<Order>,
    state: watch::Sender<State>,
    log: ErrorLog,
    starts: u64,
}

/// How a process came to its end.
enum End {
    /// It was told to.
    Asked,
    /// It was not.
    Unasked(io::Result<ExitStatus>),
}

impl Supervisor {
    async fn run(mut self) {
        let mut pause = Duration::ZERO;
        loop {
            let mark = self.log.mark();
            let began = Instant::now();
            match self.spawn() {
                Ok((child, pid)) => {
                    self.starts += 1;
                    let start = self.starts;
                    info!(pid, start, "nginx started");
                    self.state.send_replace(State::Running { pid, start });
                    match self.attend(child, pid).await {
                        End::Asked => break,
                        End::Unasked(status) => {
                            let status = status.map_or_else(
                                |error| error.to_string(),
                                |status| status.to_string(),
                            );
                            let said = last_lines(&self.log.since(mark));
                            error!(pid, status, said, "nginx ended unasked; starting it again");
                        }
                    }
                    // Workers outlive a master that was killed, and hold the ports.
                    let hard = pause > Duration::ZERO;
                    end_group(pid, if hard { Signal::KILL } else { Signal::QUIT });
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    error!(%error, cause, "nginx cannot be started; trying again");
                }
            }
            self.state.send_replace(State::Restarting);
            if began.elapsed() > STEADY {
                pause = Duration::ZERO;
            }
            if self.pause(pause).await.is_break() {
                break;
            }
            pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        }
        info!("nginx ended");
        self.state.send_replace(State::Stopped);
    }

    fn spawn(&self) -> Result<(Child, u32), ProcessError> {
        let failed = |source| ProcessError::Spawn {
            binary: self.program.binary.clone(),
            source,
        };
        remove_sockets(&self.program.configuration);
        let mut child = Command::new(&self.program.binary)
            .arg("-c")
            .arg(&self.program.configuration)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            // A signal from the terminal is for the controller, which ends NGINX in its own time.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let pid = child
            .id()
            .ok_or_else(|| failed(io::Error::other("it ended at once")))?;
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(self.log.clone().follow(stderr));
        }
        Ok((child, pid))
    }

    /// Carries out orders until the process has ended.
    async fn attend(&mut self, mut child: Child, pid: u32) -> End {
        let mut asked = false;
        let mut kill_at = None;
        let mut open = true;
        loop {
            let kill = async {
                match kill_at {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                status = child.wait() => {
                    return if asked { End::Asked } else { End::Unasked(status) };
                }
                () = kill => {
                    kill_at = None;
                    end_group(pid, Signal::KILL);
                }
                order = self.orders.recv(), if open => match order {
                    Some(Order::Reload) => signal(pid, Signal::HUP),
                    Some(Order::Reopen) => signal(pid, Signal::USR1),
                    Some(Order::Quit) => {
                        asked = true;
                        signal(pid, Signal::QUIT);
                    }
                    // Nobody is left who could tell it to end.
                    Some(Order::Terminate) | None => {
                        asked = true;
                        signal(pid, Signal::TERM);
                        kill_at = kill_at.or_else(|| Some(Instant::now() + END_AT_ONCE));
                        open = order.is_some();
                    }
                },
            }
        }
    }

    /// Waits before a restart. An order to reload ends the wait, one to end breaks off.
    async fn pause(&mut self, pause: Duration) -> std::ops::ControlFlow<()> {
        tokio::select! {
            biased;
            order = self.orders.recv() => match order {
                Some(Order::Reload | Order::Reopen) => std::ops::ControlFlow::Continue(()),
                Some(Order::Quit | Order::Terminate) | None => std::ops::ControlFlow::Break(()),
            },
            () = sleep(pause) => std::ops::ControlFlow::Continue(()),
        }
    }
}

/// Removes the sockets of an NGINX that was killed: the next one could not listen there.
fn remove_sockets(configuration: &Path) {
    let directory = configuration.parent().unwrap_or_else(|| Path::new("/"));
    for socket in HTTP_SOCKETS {
        if let Err(error) = files::remove(&directory.join(socket)) {
            warn!(%error, "cannot remove a socket of the nginx before");
        }
    }
}

/// Ends an NGINX that runs with this configuration file although nobody looks after it: its master, and workers whose
/// master was killed.
async fn end_leftovers(configuration: &Path) {
    let directory = configuration.parent().unwrap_or_else(|| Path::new("/"));
    let last = fs::read_to_string(directory.join("run/nginx.pid")).ok();
    let last: Option<u32> = last.and_then(|text| text.trim().parse().ok());
    for (signal_, patience) in [
        (Signal::QUIT, Duration::from_secs(5)),
        (Signal::TERM, END_AT_ONCE),
        (Signal::KILL, END_AT_ONCE),
    ] {
        let mut left = census::masters(configuration);
        // A master that lives ends its workers; one that is killed does not.
        let is_killed = |last: &u32| signal_ == Signal::KILL || !left.contains(last);
        if let Some(last) = last.filter(is_killed) {
            left.extend(census::orphans(last));
        }
        if left.is_empty() {
            return;
        }
        for pid in &left {
            warn!(pid, "ending the nginx that an earlier controller left");
            signal(*pid, signal_);
        }
        let deadline = Instant::now() + patience;
        while left.iter().any(|pid| census::is_alive(*pid)) && Instant::now() < deadline {
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn signal(pid: u32, signal: Signal) {
    let Some(process) = process_id(pid) else {
        return;
    };
    if let Err(error) = kill_process(process, signal) {
        warn!(pid, ?signal, %error, "cannot send a signal to nginx");
    }
}

/// Sends a signal to whatever is left of a process group; nothing being left is fine.
fn end_group(pid: u32, signal: Signal) {
    if let Some(group) = process_id(pid) {
        let _nothing_left = kill_process_group(group, signal);
    }
}

fn process_id(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// The end of what was said, for a message of ours.
pub(crate) fn last_lines(lines: &[String]) -> String {
    const SHOWN: usize = 5;
    let skipped = lines.len().saturating_sub(SHOWN);
    lines
        .iter()
        .skip(skipped)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join("; ")
}
