//! The sockets of agents with an account of their own: who may speak is decided by the kernel's word on the peer, and
//! what may be said is an errand at that agent's desk.
//!
//! A socket lies outside the home, in a folder that nobody but the owner (or root) can write, and everybody may connect:
//! a wrong account hears that it is wrong before it can say anything. It must never admit by anything that the peer
//! says of itself, wait for a peer without a bound, or remove a file that is not a socket left behind.

use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use thought_runtime::mail::{Desk, Receipt};
use thought_store::Store;
use thought_telegram::stop::Stop;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::command::mail;
use crate::config::AgentAccount;
use crate::exit::{Exit, Failure};
use crate::home::{Home, uid};
use crate::socket::{Asked, FailureText, PROTOCOL, ReceiptText, Said, TURN_MAX, frame, read, write};

/// Connections of one agent that are served at once; waits count.
const CONNECTIONS_MAX: usize = 64;
/// Pause after a connection could not be accepted (no descriptor is free).
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Longest path that the system takes for a socket, bytes.
const PATH_BYTES_MAX: usize = 107;
/// Mode of the socket: every account may connect and hear whether it is admitted.
const SOCKET_MODE: u32 = 0o666;

/// A socket that is bound and not yet listened to.
pub struct Bound {
    desk: Desk,
    uid: u32,
    listener: UnixListener,
    file: SocketFile,
}

/// The file of a bound socket; dropped, it goes, unless another file has its place.
struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours =
            std::fs::symlink_metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.inode);
        if is_ours {
            // One that stays behind is met as stale at the next start.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

/// Binds the socket of every agent that has an account.
///
/// # Errors
/// [`Failure`]: a folder or file that cannot be its place (3), another process that answers there (4).
pub async fn bind(home: &Home, store: &Store) -> Result<Vec<Bound>, Failure> {
    let mut bound = Vec::new();
    for (agent, account) in &home.config.agents {
        let path = place(home, account)?;
        clear(&path).await?;
        let cannot = |error: std::io::Error| {
            let message = format!("make the socket {}: {}", path.display(), error.kind());
            Failure::new(Exit::Machine, "socket", message)
        };
        let listener = UnixListener::bind(&path).map_err(cannot)?;
        let found = std::fs::symlink_metadata(&path).map_err(cannot)?;
        let file = SocketFile { inode: (found.dev(), found.ino()), path: path.clone() };
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(SOCKET_MODE)).map_err(cannot)?;
        tracing::info!(target: "thought::socket", agent = agent.as_str(), uid = account.uid, "socket bound");
        bound.push(Bound { desk: mail::desk(store, agent), uid: account.uid, listener, file });
    }
    Ok(bound)
}

/// Where an agent's socket lies, without links, once its folder is found fit.
///
/// # Errors
/// [`Failure`] (3) with what to do.
pub fn place(home: &Home, account: &AgentAccount) -> Result<PathBuf, Failure> {
    let shown = account.socket.display();
    let refused = |what: &str| Failure::refused("socket-place", format!("the socket {shown} {what}"));
    let (Some(folder), Some(name)) = (account.socket.parent(), account.socket.file_name()) else {
        return Err(refused("has no folder"));
    };
    let folder = match std::fs::canonicalize(folder) {
        Ok(folder) => folder,
        Err(error) => {
            let failure = refused(&format!("has a folder that cannot be entered: {}", error.kind()));
            return Err(failure.hint(format!("install -d -m 755 {}", folder.display())));
        }
    };
    if folder.starts_with(&home.path) {
        return Err(refused("lies in the home").hint("put it outside: another account cannot enter the home"));
    }
    for (depth, above) in folder.ancestors().enumerate() {
        let found = std::fs::symlink_metadata(above)
            .map_err(|error| refused(&format!("has a folder that cannot be looked at: {}", error.kind())))?;
        let others_write = found.mode() & 0o022 != 0;
        // In a sticky folder above, nobody can move what is not theirs.
        let is_fit = match depth {
            0 => found.is_dir() && !others_write && [uid(), 0].contains(&found.uid()),
            _ => !others_write || found.mode() & 0o1000 != 0,
        };
        if !is_fit {
            return Err(refused(&format!("lies below {}, which others can write", above.display()))
                .hint("give it a folder of your own: install -d -m 755 DIR"));
        }
    }
    let path = folder.join(name);
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return Err(refused(&format!("has a path of more than {PATH_BYTES_MAX} bytes")));
    }
    Ok(path)
}

/// Removes a socket that nobody answers at; leaves everything else.
async fn clear(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Failure::new(Exit::Machine, "socket", format!("look at {shown}: {}", error.kind())));
        }
    };
    if !found.file_type().is_socket() {
        return Err(Failure::refused("socket-place", format!("{shown} is there and is no socket"))
            .hint("name another path, or move the file away"));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .map_err(|error| {
                Failure::new(Exit::Machine, "socket", format!("remove the stale {shown}: {}", error.kind()))
            }),
        Ok(_) | Err(_) => Err(Failure::new(
            Exit::Conflict,
            "socket-held",
            format!("another process answers at the socket {shown}"),
        )
        .hint("give each home a socket of its own")),
    }
}

/// Listens at every bound socket until told to stop.
pub fn start(bound: Vec<Bound>, tasks: &mut JoinSet<Result<(), Failure>>, stop: &Stop) {
    for socket in bound {
        let stop = stop.clone();
        tasks.spawn(async move {
            socket.listen(stop).await;
            Ok(())
        });
    }
}

impl Bound {
    async fn listen(self, stop: Stop) {
        let Self { desk, uid, listener, file } = self;
        let desk = Arc::new(desk);
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut talks: JoinSet<()> = JoinSet::new();
        let mut refused = 0_u64;
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.said() => break,
                Some(_) = talks.join_next(), if !talks.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(target: "thought::socket", kind = %error.kind(), "a connection was not accepted");
                    tokio::select! {
                        () = stop.said() => break,
                        () = tokio::time::sleep(ACCEPT_PAUSE) => continue,
                    }
                }
            };
            let agent = desk.sender();
            if !stream.peer_cred().is_ok_and(|peer| peer.uid() == uid) {
                refused = refused.saturating_add(1);
                // Who may not speak may not fill the log either.
                if refused.is_power_of_two() {
                    tracing::warn!(target: "thought::socket", agent, refused, "another account was refused");
                }
                let message = format!("this is the socket of {agent}, and your account is not that agent's");
                turn_away(stream, Failure::refused("wrong-account", message));
            } else if let Ok(place) = places.clone().try_acquire_owned() {
                let (desk, stop) = (desk.clone(), stop.clone());
                talks.spawn(async move {
                    talk(&desk, stream, &stop).await;
                    drop(place);
                });
            } else {
                let message = format!("{CONNECTIONS_MAX} connections of {agent} are open already");
                turn_away(stream, Failure::new(Exit::Machine, "socket-busy", message));
            }
        }
        // Nobody new finds the way; who is being served hears that it is over.
        drop((listener, file));
        while talks.join_next().await.is_some() {}
    }
}

/// Says why a connection is not served, without waiting for its other end.
fn turn_away(stream: UnixStream, failure: Failure) {
    let Ok(bytes) = frame(&Said::Error(FailureText::of(failure))) else { return };
    // One short frame fits the buffer of a fresh connection; a peer that is gone needs no answer.
    if let Ok(mut stream) = stream.into_std() {
        drop(stream.write_all(bytes.expose()));
    }
}

/// One connection: a greeting, one errand, one answer.
async fn talk(desk: &Desk, mut stream: UnixStream, stop: &Stop) {
    let agent = desk.sender();
    let said = async {
        write(&mut stream, &Said::Welcome { protocol: PROTOCOL, agent: agent.to_owned() }).await?;
        let asked: Asked = read(&mut stream, TURN_MAX).await?;
        let (mut reading, mut writing) = stream.split();
        let outcome = tokio::select! {
            biased;
            outcome = serve(desk, &asked) => outcome,
            () = stop.said() => Err(Failure::new(Exit::Machine, "stopping", "thought serve is being stopped")
                .hint("run the same command again later: a message that was accepted is not accepted twice")),
            () = over(&mut reading) => return Ok(()),
        };
        let answer = match outcome {
            Ok(receipt) => Said::Receipt(ReceiptText::of(receipt)),
            Err(failure) => Said::Error(FailureText::of(failure)),
        };
        write(&mut writing, &answer).await
    };
    let ended: Result<(), crate::socket::Error> = said.await;
    if let Err(error) = ended {
        tracing::info!(target: "thought::socket", agent, error = %error, "a connection ended early");
    }
}

async fn serve(desk: &Desk, asked: &Asked) -> Result<Receipt, Failure> {
    let errand = asked.errand()?;
    desk.serve(&errand).await.map_err(mail::failure)
}

/// Ends when the peer is gone or says more than its one errand.
async fn over(reading: &mut (impl AsyncRead + Unpin)) {
    // Whatever comes, an end or a byte, ends it.
    let _any = reading.read_u8().await;
}
