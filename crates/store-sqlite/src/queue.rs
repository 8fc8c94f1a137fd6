//! The queue of reads: bounded, and each read rouses one thread, the one that rested last: what it read before is still
//! in its cache, and the others keep out of each other's way.
//!
//! A producer beyond the bound waits to hand its own over; what was handed over is answered even when the queue is closed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use tokio::sync::Semaphore;

/// Values that wait for a thread.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    places: Semaphore,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    /// Threads that wait for a value, the one that rested last at the end.
    resting: Vec<Thread>,
    is_closed: bool,
}

impl<T> Queue<T> {
    /// A queue for at most so many values.
    pub(crate) fn new(places: usize) -> Self {
        let state = State { waiting: VecDeque::new(), resting: Vec::new(), is_closed: false };
        Self { state: Mutex::new(state), places: Semaphore::new(places) }
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
            let roused = state.resting.pop();
            drop(state);
            roused.iter().for_each(Thread::unpark);
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
            let this = std::thread::current();
            let id = this.id();
            state.resting.push(this);
            drop(state);
            std::thread::park();
            state = self.lock();
            // A thread may wake unasked.
            state.resting.retain(|resting| resting.id() != id);
        }
    }

    /// Takes no more values, and lets every thread end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let resting = std::mem::take(&mut state.resting);
        drop(state);
        self.places.close();
        resting.iter().for_each(Thread::unpark);
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

    #[tokio::test]
    async fn the_thread_that_rested_last_is_roused_first() {
        let queue = Arc::new(Queue::new(8));
        let (told, answers) = std::sync::mpsc::channel();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (its, told) = (queue.clone(), told.clone());
                std::thread::spawn(move || {
                    while let Some(value) = its.take() {
                        told.send((value, std::thread::current().id())).unwrap();
                    }
                })
            })
            .collect();
        let all_rest = || {
            while queue.lock().resting.len() < 3 {
                std::thread::yield_now()
            }
        };
        let mut first = None;
        for value in 0..20 {
            all_rest();
            queue.put(value).await;
            let (answered, by) = answers.recv().unwrap();
            assert_eq!(answered, value);
            assert_eq!(*first.get_or_insert(by), by);
        }
        // Several at once are answered, whoever does it.
        for value in 20..28 {
            queue.put(value).await;
        }
        let mut values: Vec<_> = (20..28).map(|_| answers.recv().unwrap().0).collect();
        values.sort_unstable();
        assert_eq!(values, (20..28).collect::<Vec<_>>());
        queue.close();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
