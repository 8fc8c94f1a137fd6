//! The listener of the webhook: bounded connections, heads, bodies and times. It parses HTTP through hyper and knows of a
//! post no more than its path, its secret and its size.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ALLOW, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

use super::{Answer, Desk, SECRET_HEADER};
use crate::ingress::ChannelState;
use crate::limits::{
    WEBHOOK_ACCEPT_PAUSE_MS, WEBHOOK_BODY_BYTES_MAX, WEBHOOK_CONNECTIONS_MAX, WEBHOOK_HEAD_BYTES_MAX,
    WEBHOOK_HEADERS_MAX, WEBHOOK_READ_MS, WEBHOOK_STOP_MS,
};
use crate::stop::{Next, Stop};

/// Takes connections until told to stop, then waits a little for posts on their way.
pub(super) async fn serve(listener: std::net::TcpListener, desk: Arc<Desk>, stop: &Stop) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(kind = %error.kind(), "the webhook cannot be listened for");
            desk.state.send_replace(ChannelState::Problem { code: "webhook-not-heard" });
            return stop.said().await;
        }
    };
    let mut connections = JoinSet::new();
    let mut guests = VecDeque::new();
    loop {
        let taken = stop.unless(async {
            let taken = listener.accept().await;
            make_room(&mut guests, &mut connections).await;
            taken
        });
        match taken.await {
            None => break,
            Some(Ok((stream, _peer))) => {
                let (desk, stop, is_known) = (Arc::clone(&desk), stop.clone(), Arc::<AtomicBool>::default());
                let known = Arc::clone(&is_known);
                let task = connections.spawn(async move { connection(stream, desk, known, &stop).await });
                guests.push_back(Guest { task, is_known });
            }
            Some(Err(_too_many)) => {
                if stop.pause(Duration::from_millis(WEBHOOK_ACCEPT_PAUSE_MS)).await == Next::Stop {
                    break;
                }
            }
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(Duration::from_millis(WEBHOOK_STOP_MS), finished).await.is_err() {
        connections.shutdown().await;
    }
}

/// A connection that is taken.
struct Guest {
    task: AbortHandle,
    /// Whether the secret was shown through it.
    is_known: Arc<AtomicBool>,
}

/// Comes back when there is a place. Where there is none, the oldest that has not shown the secret has to go: whoever has
/// none may connect as often as they like and holds up nobody. Where all have shown it, they are waited for; more
/// connections wait in the system's own queue.
async fn make_room(guests: &mut VecDeque<Guest>, connections: &mut JoinSet<()>) {
    loop {
        while connections.try_join_next().is_some() {}
        guests.retain(|guest| !guest.task.is_finished());
        if guests.len() < WEBHOOK_CONNECTIONS_MAX {
            return;
        }
        let stranger = guests.iter().position(|guest| !guest.is_known.load(Relaxed));
        if let Some(stranger) = stranger.and_then(|at| guests.remove(at)) {
            stranger.task.abort();
            tracing::debug!("a connection to the webhook made room for another");
        }
        connections.join_next().await;
    }
}

async fn connection(stream: TcpStream, desk: Arc<Desk>, is_known: Arc<AtomicBool>, stop: &Stop) {
    let service = service_fn(move |request| {
        let (desk, is_known) = (Arc::clone(&desk), Arc::clone(&is_known));
        async move { Ok::<_, Infallible>(respond(&desk, &is_known, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(WEBHOOK_READ_MS))
        .max_buf_size(WEBHOOK_HEAD_BYTES_MAX)
        .max_headers(WEBHOOK_HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.said() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if ended.is_err() {
        tracing::debug!("a connection to the webhook broke off");
    }
}

async fn respond(desk: &Desk, is_known: &AtomicBool, request: Request<Incoming>) -> Response<Empty<Bytes>> {
    let status = judge(desk, is_known, request).await;
    if !status.is_success() {
        tracing::debug!(status = status.as_u16(), "a post to the webhook is not taken");
    }
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

/// In this order: where to, who, what, how much; only then is anything read.
async fn judge(desk: &Desk, is_known: &AtomicBool, request: Request<Incoming>) -> StatusCode {
    if request.uri().path() != desk.path {
        return StatusCode::NOT_FOUND;
    }
    if !desk.admits(request.headers().get_all(SECRET_HEADER).iter().map(HeaderValue::as_bytes)) {
        return StatusCode::UNAUTHORIZED;
    }
    is_known.store(true, Relaxed);
    if request.method() != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED;
    }
    let body = request.into_body();
    if body.size_hint().lower() > WEBHOOK_BODY_BYTES_MAX as u64 {
        return StatusCode::PAYLOAD_TOO_LARGE;
    }
    let patience = Duration::from_millis(WEBHOOK_READ_MS);
    let read = tokio::time::timeout(patience, Limited::new(body, WEBHOOK_BODY_BYTES_MAX).collect()).await;
    let body = match read {
        Ok(Ok(body)) => body.to_bytes().to_vec(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return StatusCode::PAYLOAD_TOO_LARGE;
        }
        Ok(Err(_broken)) => return StatusCode::BAD_REQUEST,
        Err(_elapsed) => return StatusCode::REQUEST_TIMEOUT,
    };
    match desk.keep(body).await {
        Answer::Taken => StatusCode::OK,
        Answer::Malformed => StatusCode::BAD_REQUEST,
        Answer::NotNow => StatusCode::SERVICE_UNAVAILABLE,
    }
}
