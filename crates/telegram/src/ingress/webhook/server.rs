//! The listener of the webhook: bounded connections, heads, bodies and times. It parses HTTP through hyper and knows of a
//! post no more than its path, its secret and its size.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ALLOW, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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
    let places = Arc::new(Semaphore::new(WEBHOOK_CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        // A place comes first: more connections than there are places wait in the system's own queue.
        let taken = stop.unless(async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        });
        match taken.await {
            None => break,
            Some((Ok(place), Ok((stream, _peer)))) => {
                let (desk, stop) = (Arc::clone(&desk), stop.clone());
                connections.spawn(async move {
                    connection(stream, desk, &stop).await;
                    drop(place);
                });
            }
            Some(_) => {
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

async fn connection(stream: TcpStream, desk: Arc<Desk>, stop: &Stop) {
    let service = service_fn(move |request| {
        let desk = Arc::clone(&desk);
        async move { Ok::<_, Infallible>(respond(&desk, request).await) }
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

async fn respond(desk: &Desk, request: Request<Incoming>) -> Response<Empty<Bytes>> {
    let status = judge(desk, request).await;
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
async fn judge(desk: &Desk, request: Request<Incoming>) -> StatusCode {
    if request.uri().path() != desk.path {
        return StatusCode::NOT_FOUND;
    }
    if !desk.admits(request.headers().get_all(SECRET_HEADER).iter().map(HeaderValue::as_bytes)) {
        return StatusCode::UNAUTHORIZED;
    }
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
