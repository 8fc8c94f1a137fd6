//! The queue of reads: bounded, and each read rouses one thread.
//!
//! A producer beyond the bound waits to hand its own over; what was handed over is answered even when the queue is closed.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// Values that wait for a thread.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    places: Semaphore,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// A queue for at most so many values.
    pub(crate) fn new(places: usize) -> Self {
        Self {
            state: Mutex::new(State { waiting: VecDeque::new(), is_closed: false }),
            arrived: Condvar::new(),
            places: Semaphore::new(places),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // Every change is a single step, so what a panic leaves is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a value over, waiting for a place. A closed queue drops it.
    pub(crate) async fn put(&self, value: T) {
        // The place is given back by whoever takes the value.
        match self.places.acquire().await {
            Ok(place) => place.forget(),
            Err(_closed) => return,
        }
        let mut state = self.lock();
        if !state.is_closed {
            state.waiting.push_back(value);
            drop(state);
            self.arrived.notify_one();
        }
    }

    /// Takes the oldest value, waiting for one; `None` when the queue is closed and empty.
    pub(crate) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(value) = state.waiting.pop_front() {
                drop(state);
                self.places.add_permits(1);
                return Some(value);
            }
            if state.is_closed {
                return None;
            }
            state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes no more values, and lets every thread end.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.places.close();
        self.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn values_are_taken_in_order_and_to_the_last() {
        let queue = Queue::new(3);
        for value in 1..=3 {
            queue.put(value).await;
        }
        queue.close();
        queue.put(4).await;
        assert_eq!(std::iter::from_fn(|| queue.take()).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_producer_waits_for_a_place_and_a_thread_for_a_value() {
        let queue = Arc::new(Queue::new(1));
        queue.put(1).await;
        let mut second = std::pin::pin!(queue.put(2));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(second.as_mut().poll(&mut context).is_pending());
        let its = queue.clone();
        let thread = std::thread::spawn(move || std::iter::from_fn(|| its.take()).collect::<Vec<_>>());
        second.await;
        queue.close();
        assert_eq!(thread.join().unwrap(), [1, 2]);
    }
}
